"""`loadgen load` as a whole command."""

import json
from pathlib import Path

from benchmarks.clients.base import PYTHON, ROOT, Reading, package_version
from benchmarks.loops.common import Load


class LoadgenLoad:
    """Start, warm-up, load, analysis and JSON output together."""

    name = "loadgen-load"
    what = "`loadgen load --json`, the whole command"
    whole_command = True

    def missing(self) -> str | None:
        """The command, while it is being built."""
        return None if (ROOT / "loadgen" / "commands" / "load.py").exists() else "`loadgen load` is not there yet"

    def version(self) -> str:
        """The installed version."""
        return f"loadgen {package_version(PYTHON, 'loadgen')}"

    def argv(self, load: Load, folder: Path) -> list[str]:
        """The command; its JSON goes to standard output, which the runner keeps as `stdout`."""
        return [
            *(str(PYTHON), "-m", "loadgen", "load", "--url", load.url, "--concurrency", str(load.concurrency)),
            *("--requests", str(load.requests), "--max-tokens", str(load.max_tokens), "--json"),
        ]

    def read(self, folder: Path) -> Reading:
        """Its summary: single requests are not told apart."""
        ttft = json.loads((folder / "stdout").read_text(encoding="utf-8"))["ttft_s"]
        return Reading(reported_ttft_s=(ttft["mean"], ttft["p99"]))
