"""The lines of a server's log: what it runs with at the start, what it does every ten seconds."""

import logging
import time
from collections.abc import Mapping

from loadgen.simulator.server import SimulatorServer
from loadgen.simulator.server_info import config_text

logger = logging.getLogger(__name__)

INTERVAL_S = 10.0
_COUNTERS = {
    "prompt": "vllm:prompt_tokens",
    "generation": "vllm:generation_tokens",
    "queries": "vllm:prefix_cache_queries",
    "hits": "vllm:prefix_cache_hits",
}
_DRAFTS = {
    "drafts": "vllm:spec_decode_num_drafts",
    "drafted": "vllm:spec_decode_num_draft_tokens",
    "accepted": "vllm:spec_decode_num_accepted_tokens",
}


class StatLog:
    """Writes one line a call about what happened since the last one, as vLLM's stats logger does."""

    def __init__(self, server: SimulatorServer) -> None:
        self._server = server
        self._names = {**_COUNTERS, **(_DRAFTS if server.spec.speculative else {})}
        self._before = self._read()
        self._before_s = time.monotonic()
        self._idle = True

    def tick(self) -> None:
        """One line, unless nothing happened in this interval and the one before."""
        now = self._read()
        now_s = time.monotonic()
        change = {name: now[name] - self._before[name] for name in now}
        elapsed_s = max(now_s - self._before_s, 1e-9)
        self._before, self._before_s = now, now_s
        was_idle, self._idle = self._idle, not (change["prompt"] or change["generation"])
        if was_idle and self._idle:
            return
        state = self._server.core.state()
        logger.info(
            "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, "
            "Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
            change["prompt"] / elapsed_s,
            change["generation"] / elapsed_s,
            state.running,
            state.waiting,
            state.kv_cache_usage * 100,
            100 * now["hits"] / now["queries"] if now["queries"] else 0.0,
        )
        if change.get("drafts"):
            self._drafts(change, elapsed_s)

    def _drafts(self, change: dict[str, float], elapsed_s: float) -> None:
        logger.info(
            "SpecDecoding metrics: Mean acceptance length: %.2f, Accepted throughput: %.2f tokens/s, "
            "Drafted throughput: %.2f tokens/s, Accepted: %d tokens, Drafted: %d tokens, "
            "Avg Draft acceptance rate: %.1f%%",
            1 + change["accepted"] / change["drafts"],
            change["accepted"] / elapsed_s,
            change["drafted"] / elapsed_s,
            change["accepted"],
            change["drafted"],
            100 * change["accepted"] / change["drafted"],
        )

    def _read(self) -> dict[str, float]:
        return {name: self._server.stats.value(metric) for name, metric in self._names.items()}


def log_start(server: SimulatorServer, notes: tuple[str, ...], arguments: Mapping[str, object]) -> None:
    """The lines of vLLM's start that tell what really runs: arguments, configuration, runner, overrides, KV cache."""
    spec, effective = server.spec, server.spec.effective
    logger.info("non-default args: %s", dict(arguments))
    logger.info("Initializing a V1 LLM engine (v%s) with config: %s", spec.version, config_text(spec))
    for note in notes:
        logger.warning("%s", note)
    if effective["runner"] == "V1":
        logger.info("Model Runner V2 does not yet support this configuration; using the V1 model runner instead.")
    else:
        logger.info("Using V2 Model Runner")
    if effective["async_scheduling"]:
        logger.info("Asynchronous scheduling is enabled.")
    logger.info("GPU KV cache size: %s tokens", f"{spec.num_gpu_blocks * spec.block_size:,}")
