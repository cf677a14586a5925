"""Checks on what came out, over time and between the cells of a pair. An outcome voids nothing, it only warns."""

import math
from statistics import median

from loadgen.analysis.check_context import CellContext, void, warn
from loadgen.analysis.model import Check
from loadgen.analysis.pairs import Pair
from loadgen.load.summary import Distribution
from loadgen.store.model import CellResult

LENGTH_DRIFT = 0.05
"""Case C31: mean output lengths further apart than that compare different work."""
STANDARD_ERRORS = 2.0
REPEATED_NGRAM_SHARE = 0.5
"""Share of word 4-grams that occurred before; code repeats a quarter of its own, loops nearly all."""
SLOW_BIN = 0.6
"""reference/h200.md lesson 4: half-second bins fell by up to 40 % in slow phases."""
SLOW_BINS = 2
"""One slow bin is the end of a few requests; two in a row are a phase of a second."""
BIN_TOKENS = 20.0
"""Bins with fewer tokens vary by themselves."""
STEAL_SHARE = 0.05
"""Share of CPU time taken by the hypervisor."""


def degenerate_output(cell: CellResult, context: CellContext) -> Check | None:
    """The outputs loop, which any drafter predicts."""
    share = cell.repeated_ngram_share
    if not context.pair_speculates or share is None or share <= REPEATED_NGRAM_SHARE:
        return None
    cause = f"{share:.0%} of the outputs' word 4-grams occurred before: loops, which are easy to draft"
    cure = "use other prompts or another model" if context.natural_ends else "use natural ends, not --ignore-eos"
    return warn("degenerate-output", cause, f"{cure}; the acceptance says nothing of real text")


def slow_phase(cell: CellResult, _context: CellContext) -> Check | None:
    """The rate fell for a second or more inside the window, or began low: a reason to repeat, never to void."""
    bins = cell.half_second_tokens
    usual = median(bins) if bins else 0.0
    if len(bins) < 2 * SLOW_BINS or usual < BIN_TOKENS:
        return None
    slow = [tokens < SLOW_BIN * usual for tokens in bins]
    if all(slow[:SLOW_BINS]):
        cause = "the window began slowly: compilation or a cold start inside it"
        return warn("cold-start", cause, "use a longer warm-up; repeat the cell")
    if any(all(slow[i : i + SLOW_BINS]) for i in range(len(slow) - SLOW_BINS + 1)):
        cause = f"the token rate fell below {SLOW_BIN:.0%} of its median for a second or more"
        return warn(
            "slow-phase", cause, "repeat the cell; it is kept, for leaving slow phases out would bend the result"
        )
    return None


def stolen_cpu(cell: CellResult, _context: CellContext) -> Check | None:
    """The hypervisor gave the CPU to others."""
    if cell.steal_share is None or cell.steal_share <= STEAL_SHARE:
        return None
    return warn(
        "stolen-cpu", f"the hypervisor took {cell.steal_share:.0%} of the CPU time", "repeat on a quiet machine"
    )


OUTPUT_CHECKS = (degenerate_output, slow_phase, stolen_cpu)


def length_drift(pair: Pair) -> Check | None:
    """The two profiles wrote outputs of different length, beyond what so few requests vary by themselves."""
    base, own = pair.baseline.output_tokens, pair.profile.output_tokens
    if not base.mean or own.mean is None:
        return None
    chance = STANDARD_ERRORS * math.hypot(_standard_error(base), _standard_error(own)) / base.mean
    if abs(own.mean / base.mean - 1) <= LENGTH_DRIFT + chance:
        return None
    cause = f"mean output {own.mean:.0f} tokens against {base.mean:.0f} of the baseline"
    return warn("length-drift", cause, "force equal lengths (--ignore-eos) or use more requests; compare TPOT, not E2E")


def _standard_error(lengths: Distribution) -> float:
    """Of the mean; the standard deviation is read off p90 − p50 (1.28 of it in a normal distribution)."""
    if lengths.p90 is None or lengths.p50 is None or lengths.n < 1:
        return 0.0
    return (lengths.p90 - lengths.p50) / 1.28 / math.sqrt(lengths.n)


def prompts_differ(pair: Pair) -> Check | None:
    """The two cells did not serve the same prompts (case C53)."""
    base, own = pair.baseline.prompts_sha256, pair.profile.prompts_sha256
    if not base or not own or base == own:
        return None
    return void(
        "prompts-differ", "the two profiles served different prompts", "measure both with one seed and workload"
    )


PAIR_CHECKS = (length_drift, prompts_differ)
