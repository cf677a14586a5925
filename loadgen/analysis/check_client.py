"""Checks on the client's side of a cell: did the load generator and the requests do what they should?"""

from loadgen.analysis.check_context import CellContext, void, warn
from loadgen.analysis.model import Check
from loadgen.load.health import CPU_LIMIT, LAG_LIMIT_S, LAG_PERIOD_S, ZERO_GAP_LIMIT
from loadgen.store.model import CellResult

LAG_SHARE_OF_GAP = 0.10
"""A lag below a tenth of the gap between two chunks is not seen in a slow server's figures (CPU vLLM: 100 ms gaps)."""
LAG_SHARE_OF_E2E = 0.05
"""A late wake-up delays a request's start and its last stamp. If 99 of 100 wake-ups are late by less than 5 % of E2E,
the mean lag moves E2E, TPOT and (by Little's law) throughput by well under 1 %: that is told, more voids the cell.
Beside a vLLM on the same cores (CPU build) 20 to 70 ms are usual, at an E2E of 2 to 5 s."""
FEW_SAMPLES = 100
"""Below that many lag samples their p99 is the single worst one …"""
PAUSE_SHARE = 0.02
"""… and one pause of less than 2 % of a short window cannot move its rate by more than that."""
REACHED_SHARE = 0.90
"""Cases C45 and C47: below 90 % of the wanted requests in flight the level is another one."""
SUCCESS_SHARE = 0.95
"""Case C44: a level with less success is not used for break-even or capacity."""
LOCKSTEP = 0.5
"""From half-way between spread evenly (0) and all at once (1) prefills come in bursts."""
ESTIMATED_SHARE = 0.05
"""Case C12: requests whose tokens were counted from events, which undercount under speculation."""


def client_bound(cell: CellResult, _context: CellContext) -> Check | None:
    """The load generator itself was the bottleneck."""
    told = max(LAG_LIMIT_S, LAG_SHARE_OF_GAP * (cell.chunk_gap_s.p50 or 0.0))
    borne = max(told, LAG_SHARE_OF_E2E * (cell.e2e_s.p50 or 0.0))
    lag, cpu, processes = cell.client.loop_lag_p99_s, cell.client.cpu_share, cell.client.processes
    most = CPU_LIMIT * processes
    if lag <= told and cpu <= most:
        return None
    one_pause = cell.window_s / LAG_PERIOD_S < FEW_SAMPLES and lag <= PAUSE_SHARE * cell.window_s
    make = warn if cpu <= most and (lag <= borne or one_pause) else void
    limit = borne if make is void else told
    cause = (
        f"event-loop lag p99 {lag * 1e3:.1f} ms (limit {limit * 1e3:.0f} ms), client CPU {cpu:.2f} of {most:.1f} cores"
    )
    # An idle client that wakes late has been kept from its core by others: more processes would not help.
    cure = (
        f"free the client's machine, or spread the load with --workers {2 * processes} or over a second machine"
        if cpu > most / 2
        else "free the client's machine of other work, or run loadgen on a quiet one"
    )
    return make("client-bound", cause, cure)


def reached_concurrency(cell: CellResult, _context: CellContext) -> Check | None:
    """Fewer requests were in flight than the level says."""
    reached, wanted = cell.client.in_flight_mean, cell.key.level
    if reached >= REACHED_SHARE * wanted:
        return None
    cause = f"{reached:.1f} of {wanted} requests were in flight on average"
    return void("reached-concurrency", cause, "use more prompts, a longer window, or a level the server can hold")


def success(cell: CellResult, _context: CellContext) -> Check | None:
    """Too many requests failed; cancelled ones count as neither."""
    tried = sum(count for outcome, count in cell.outcomes.items() if outcome != "cancelled")
    ok = cell.outcomes.get("ok", 0)
    if tried and ok / tried >= SUCCESS_SHARE:
        return None
    others = sorted((name, n) for name, n in cell.outcomes.items() if n and name not in ("ok", "cancelled"))
    seen = ", ".join(f"{n} {name}" for name, n in others) or "no request ended"
    return void(
        "success",
        f"{ok} of {tried} requests succeeded ({seen})",
        "read the server's log and the errors in requests.jsonl",
    )


def no_output(cell: CellResult, _context: CellContext) -> Check | None:
    """Nothing arrived in the window, so there is no rate to compare."""
    if cell.output_tokens_per_s > 0 and cell.window_s > 0:
        return None
    return void("no-output", f"no token arrived in a window of {cell.window_s:.1f} s", "use a longer window")


def lockstep(cell: CellResult, context: CellContext) -> Check | None:
    """All workers end together, so prefills come in bursts."""
    if cell.key.level < 2 or cell.client.lockstep <= LOCKSTEP:
        return None
    cause = f"requests end together (lockstep {cell.client.lockstep:.2f}; 0 is spread evenly)"
    cure = (
        "raise --max-tokens if answers end at it, or use prompts whose answers differ in length"
        if context.natural_ends
        else "let answers end by themselves (without --ignore-eos or a fixed output length)"
    )
    return warn("lockstep", cause, f"{cure}, so that prefills do not come in bursts")


def coalesced_chunks(cell: CellResult, context: CellContext) -> Check | None:
    """Events are bundled on the way: chunk gaps say nothing."""
    if cell.client.zero_gap_share <= ZERO_GAP_LIMIT:
        return None
    cause = f"{cell.client.zero_gap_share:.0%} of the events came in the same read as the one before"
    cure = (
        "free the machine that server and client share"
        if context.direct
        else "take a proxy, if there is one, out of the way"
    )
    return warn("coalesced-chunks", cause, f"{cure}; TPOT and tokens/s hold, chunk gaps do not")


def tokens_estimated(cell: CellResult, context: CellContext) -> Check | None:
    """Tokens were counted from events; several tokens in one event then undercount the speculating side."""
    total = sum(cell.token_sources.values())
    estimated = cell.token_sources.get("chunks", 0)
    if not total or estimated / total <= ESTIMATED_SHARE:
        return None
    make = void if context.pair_speculates else warn
    cause = f"{estimated} of {total} requests had no usage from the server; their tokens are estimated"
    return make("tokens-estimated", cause, "use a server that sends usage (stream_options.include_usage)")


CLIENT_CHECKS = (
    client_bound,
    reached_concurrency,
    success,
    no_output,
    lockstep,
    coalesced_chunks,
    tokens_estimated,
)
