"""guidellm, from PyPI in an environment of its own, as a whole command."""

import json
import re
from pathlib import Path

from benchmarks.clients.base import NO_TOKENIZER, TOKENIZER, VENVS, Reading, package_version
from benchmarks.loops.common import Load, prompt

VENV = VENVS / "guidellm"
REQUIREMENT = "guidellm==0.8.1"


class Guidellm:
    """Closed loop (`concurrent`) with as many prompts as requests."""

    name = "guidellm"
    what = "`guidellm run`, the whole command"
    whole_command = True

    def missing(self) -> str | None:
        """Its environment, or the tokenizer it insists on."""
        if package_version(VENV / "bin" / "python", "guidellm") is None:
            return "it is not installed: run with --install"
        return None if TOKENIZER.exists() else NO_TOKENIZER

    def version(self) -> str:
        """The installed version."""
        return f"guidellm {package_version(VENV / 'bin' / 'python', 'guidellm')}"

    def argv(self, load: Load, folder: Path) -> list[str]:
        """Options of guidellm 0.8."""
        rows = ({"prompt": prompt(n), "output_tokens_count": load.max_tokens} for n in range(load.requests))
        data = folder / "prompts.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return [
            *(str(VENV / "bin" / "guidellm"), "run", "--disable-console"),
            *("--backend", f"kind=openai_http,target={load.url},model=mock,request_format=/v1/chat/completions"),
            *("--profile", f"kind=concurrent,streams={load.concurrency}"),
            *("--constraint", f"kind=max_requests,count={load.requests}"),
            *("--data", f"kind=json_file,path={data}"),
            *("--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}"),
            *("--output", f"kind=json,path={folder / 'guidellm.json'}"),
        ]

    def read(self, folder: Path) -> Reading:
        """TTFT as its report defines it: `first_token_iteration` minus `request_start`."""
        report = json.loads((folder / "guidellm.json").read_text(encoding="utf-8"))
        ttft: dict[str, float] = {}
        for one in report["benchmarks"][0]["requests"]["successful"]:
            found = re.search(r"bench-\d+", one["request_args"])
            timings = one["info"]["timings"]
            if found:
                ttft[found[0]] = timings["first_token_iteration"] - timings["request_start"]
        return Reading(ttft_s=ttft)
