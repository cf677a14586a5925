"""aiperf, from PyPI in an environment of its own, as a whole command."""

import json
from pathlib import Path

from benchmarks.clients.base import NO_TOKENIZER, TOKENIZER, VENVS, Reading, package_version
from benchmarks.loops.common import Load, prompt

VENV = VENVS / "aiperf"
REQUIREMENT = "aiperf==0.13.0"


class Aiperf:
    """Closed loop (`--concurrency`), token counts from the server, telemetry off."""

    name = "aiperf"
    what = "`aiperf profile`, the whole command"
    whole_command = True

    def missing(self) -> str | None:
        """Its environment, or the tokenizer it insists on."""
        if package_version(VENV / "bin" / "python", "aiperf") is None:
            return "it is not installed: run with --install"
        return None if TOKENIZER.exists() else NO_TOKENIZER

    def version(self) -> str:
        """The installed version."""
        return f"aiperf {package_version(VENV / 'bin' / 'python', 'aiperf')}"

    def argv(self, load: Load, folder: Path) -> list[str]:
        """Options of aiperf 0.13."""
        data = folder / "prompts.jsonl"
        rows = ({"text": prompt(n), "output_length": load.max_tokens} for n in range(load.requests))
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return [
            *(str(VENV / "bin" / "aiperf"), "profile", "--model", "mock", "--url", load.url),
            *("--endpoint-type", "chat", "--streaming", "--input-file", str(data)),
            *("--custom-dataset-type", "single_turn", "--extra-inputs", f"max_tokens:{load.max_tokens}"),
            *("--concurrency", str(load.concurrency), "--request-count", str(load.requests)),
            *("--tokenizer", str(TOKENIZER), "--use-server-token-count", "--export-level", "records"),
            *("--ui", "none", "--no-server-metrics", "--no-gpu-telemetry", "--artifact-dir", str(folder)),
        ]

    def read(self, folder: Path) -> Reading:
        """Its records' `time_to_first_token`, told apart by the `x-request-id` that it sends."""
        ttft: dict[str, float] = {}
        for line in (folder / "profile_export.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            measured = record["metrics"].get("time_to_first_token")
            if measured is not None:
                ttft[record["metadata"]["x_request_id"]] = measured["value"] / 1e3
        return Reading(key="x_request_id", ttft_s=ttft)
