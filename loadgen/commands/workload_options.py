"""Workload options of a command line, as workloads: lengths drawn per prompt, traces, and what to say of them."""

from collections.abc import Iterable
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.sweep.tokens import SAMPLE_PROMPTS
from loadgen.workloads.base import PromptRequest, Purpose, Workload
from loadgen.workloads.file_workload import FileWorkload
from loadgen.workloads.lengths import parse_lengths
from loadgen.workloads.registry import get_workload, trace_workload, with_lengths, workload_warnings


def chosen_workload(
    name: str, input_lengths: str | None = None, output_lengths: str | None = None, trace: Path | None = None
) -> Workload:
    """The workload of that name or file; with the lengths of a trace, or lengths drawn per prompt (`uniform:100-400`),
    which follow from the seed alone: the same for every profile. UsageError for what does not go together.
    """
    drawn = input_lengths is not None or output_lengths is not None
    if trace is not None:
        if drawn:
            raise UsageError("--trace brings its own lengths: leave --input-lengths and --output-lengths out.")
        return trace_workload(trace, name)
    if not drawn:
        return get_workload(name)
    inputs, outputs = (None if text is None else parse_lengths(text) for text in (input_lengths, output_lengths))
    return with_lengths(name, inputs, outputs)


def require_prompts(workloads: Iterable[Workload], seed: int, level: int, least: int) -> None:
    """UsageError if a file surely has too few prompts for its highest level: not found out after hours of measuring.

    `least` is the number that a cell measures at least; how many more it takes depends on how fast the server is.
    """
    needs: tuple[tuple[Purpose, int], ...] = (("probe", SAMPLE_PROMPTS), ("warmup", level), ("measure", least))
    for workload in workloads:
        if isinstance(workload, FileWorkload):
            for purpose, count in needs:
                workload.prompts(PromptRequest(seed=seed, level=level, repeat=0, count=count, purpose=purpose), len)


def workload_notes(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """What a user should know before believing results on these workloads."""
    return tuple(f"{workload.name}: {text}" for workload in workloads for text in workload_warnings(workload))
