"""`loadgen inspect stream`: what one stored stream says."""

from pathlib import Path
from typing import Annotated, Any

import typer

from loadgen.errors import ExitCode


def command(
    file: Annotated[Path, typer.Argument(help="An .sse body, an .http response, or a .reads.jsonl list of reads.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Print tokens, chunks, times, finish reason, usage, outcome and warnings of one stored stream.

    Exit code 1 if the stream is no success.

    Example: loadgen inspect stream reply.sse --json
    """
    import json

    from loadgen.load.decode import Asked, decode
    from loadgen.load.record import Outcome
    from loadgen.load.replay import load_file

    arrivals, timed = load_file(file)
    record = decode(arrivals, Asked(prompt_id=file.name, keep_text=True))
    facts = describe(record, timed=timed)
    if as_json:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(_lines(facts)))
    if record.outcome is not Outcome.OK:
        raise typer.Exit(ExitCode.FINDINGS)


def describe(record: Any, *, timed: bool) -> dict[str, Any]:
    """The facts of a record, JSON-ready; times are None where the file holds none."""
    from dataclasses import asdict

    from loadgen.load.summary import distribution

    gaps = distribution(record.chunk_gaps_s if timed else ())
    return {
        "outcome": record.outcome.value,
        "error": record.error,
        "http_status": record.http_status,
        "output_tokens": record.output_tokens,
        "token_source": record.token_source,
        "prompt_tokens": record.prompt_tokens,
        "chunks": len(record.chunk_times_s),
        "chunk_tokens": list(record.chunk_tokens) if record.chunk_tokens is not None else None,
        "finish_reason": record.finish_reason,
        "ttft_s": record.ttft_s if timed else None,
        "e2e_s": record.e2e_s if timed else None,
        "tpot_s": record.tpot_s if timed else None,
        "tpot_after_first_chunk_s": record.tpot_after_first_chunk_s if timed else None,
        "chunk_gap_s": asdict(gaps),
        "repeated_ngram_share": record.repeated_ngram_share,
        "spec_decode": record.spec_decode,
        "text": record.text,
        "warnings": list(record.warnings),
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"{name:26}{_shown(value)}" for name, value in facts.items() if name not in ("warnings", "chunk_gap_s")]
    gaps = ", ".join(f"{name} {_shown(value)}" for name, value in facts["chunk_gap_s"].items())
    return [*lines, f"{'chunk_gap_s':26}{gaps}", *(f"warning: {warning}" for warning in facts["warnings"])]


def _shown(value: object) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return repr(value) if "\n" in value else value
    return str(value)
