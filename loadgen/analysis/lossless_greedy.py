"""Greedy answers: is a divergence a near tie, or did the profile say what the baseline would not?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from loadgen.analysis.lossless_drafts import not_tested_because
from loadgen.analysis.lossless_model import Arm, Divergence, Drafted, GreedyFinding, Quality, Rate, Tolerance

TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float32": (0.005, 0.02),
    "16-bit": (0.1, 0.25),
    "quantised": (0.3, 0.5),
}
"""Nat, from strict to lax: vllm-facts part 8 (the EAGLE matrix of vLLM and llama.cpp#25618)."""
CONTROL_DIVERGENCES = 5
"""So many divergences of the baseline from itself calibrate the tolerance; fewer tell nothing of its tail."""
CONTROL_FACTOR = 1.5
HARD_PROMPTS = 2
"""Prompts with a hard divergence that refute the same quality."""
ACCEPTED_FAULT_RATE = 0.003
"""Hard prompts that a correct server may show (a tail of rounding beyond the tolerance); see `false_alarm_rate`."""
_QUANTISED = ("fp8", "int4", "int8", "awq", "gptq", "w4a16", "w8a8", "nvfp4", "mxfp4", "bitsandbytes", "gguf")


def dtype_kind(*facts: Mapping[str, Any]) -> str:
    """`float32`, `16-bit` or `quantised`: the coarsest that any server's settings or log names; 16-bit if none does."""
    said = " ".join(
        str(fact.get(key, "")).lower()
        for fact in facts
        for key in ("dtype", "quantization", "kv_cache_dtype", "kv-cache-dtype")
    )
    if any(name in said for name in _QUANTISED):
        return "quantised"
    words = said.split()
    return "float32" if any(word in ("float32", "float") for word in words) and "bfloat16" not in words else "16-bit"


def tolerance(kind: str, control: Iterable[Divergence]) -> Tolerance:
    """The gap that is allowed: the dtype's lax end, or, where the baseline diverges from itself at least five times,
    1.5 times the 95th percentile of those gaps, within the dtype's two ends.
    """
    low, high = TOLERANCES[kind]
    gaps = [d.gap for d in control if d.gap is not None]
    if len(gaps) < CONTROL_DIVERGENCES:
        return Tolerance(kind, high, "dtype")
    seen = CONTROL_FACTOR * float(np.quantile(gaps, 0.95))
    return Tolerance(kind, min(max(seen, low), high), "control")


def is_hard(divergence: Divergence, allowed: Tolerance) -> bool:
    """True if the baseline would not have said that token: outside its top 20, or behind by more than the tolerance."""
    return divergence.gap is None or divergence.gap > allowed.nat


def rate(count: int, n: int) -> Rate:
    """k of n with the exact 95 % interval (Clopper and Pearson 1934); (0, 1) for n = 0."""
    if n == 0:
        return Rate(0, 0, (0.0, 1.0))
    interval = stats.binomtest(count, n).proportion_ci(0.95, method="exact")
    return Rate(count, n, (float(interval.low), float(interval.high)))


def false_alarm_rate(prompts: int, fault_rate: float = ACCEPTED_FAULT_RATE) -> float:
    """Chance that a correct server is called different: two hard prompts of the first set, or one and then another
    in a second set of the same size.
    """
    none = (1 - fault_rate) ** prompts
    one = prompts * fault_rate * (1 - fault_rate) ** (prompts - 1)
    return (1 - none - one) + one * (1 - none)


def judge_greedy(arms: Sequence[Arm], control: Sequence[Arm], kind: str, drafted: Drafted, sets: int) -> GreedyFinding:
    """The verdict on the profile's arms; `sets` counts the sets of prompts tested so far (1 or 2).

    Several arms answer the same prompts: a prompt is hard if any of its answers is.
    """
    allowed = tolerance(kind, (d for arm in control for d in arm.divergences))
    found = [d for arm in arms for d in arm.divergences]
    hard = tuple(d for d in found if is_hard(d, allowed))
    hard_rate = _hard_rate(arms, allowed)
    control_rate = _hard_rate(control, allowed)
    firsts = [at for arm in arms for at in arm.first_divergences]
    quality, reason = _verdict(hard, hard_rate, control_rate, drafted)
    return GreedyFinding(
        quality=quality,
        reason=reason,
        tolerance=allowed,
        hard=hard_rate,
        control_hard=control_rate,
        exact=rate(sum(arm.exact for arm in arms), sum(arm.prompts for arm in arms)),
        control_exact=rate(sum(arm.exact for arm in control), sum(arm.prompts for arm in control)),
        soft_divergences=len(found) - len(hard),
        median_first_divergence=float(np.median(firsts)) if firsts else None,
        hard_divergences=hard,
        drafted=drafted,
        wants_more=hard_rate.count == 1 and sets == 1 and control_rate.count == 0,
        arms=tuple(arms),
        control=tuple(control),
    )


def _verdict(hard: tuple[Divergence, ...], found: Rate, control: Rate, drafted: Drafted) -> tuple[Quality, str]:
    if found.count >= HARD_PROMPTS:
        if control.count and not _above_control(found, control):
            return Quality.NOT_TESTED, (
                f"in company the baseline says tokens that it would not say alone ({control.count} of {control.n} "
                "prompts), so its kernels depend on the batch; set VLLM_BATCH_INVARIANT=1 for this test"
            )
        return Quality.DIFFERS, _cause(hard)
    untested = not_tested_because(drafted)
    return (Quality.NOT_TESTED, untested) if untested else (Quality.SAME, "")


def _above_control(found: Rate, control: Rate) -> bool:
    """Fisher's exact test, one-sided at 2.5 %."""
    table = np.array([[found.count, found.n - found.count], [control.count, control.n - control.count]])
    return bool(stats.fisher_exact(table, alternative="greater").pvalue < 0.025)


def _cause(hard: tuple[Divergence, ...]) -> str:
    """Whether drafts made the difference, or the servers differ without them."""
    asked = [d for d in hard if d.got >= 0]
    alone = [d for d in asked if d.own_gap is not None and d.own_gap <= 0.0]
    if asked and 2 * len(alone) > len(asked):
        return "its server says the same without drafts, so more than the speculation differs: model, dtype or settings"
    return "its server does not say so without drafts, so the fault is in verifying drafts"


def _hard_rate(arms: Sequence[Arm], allowed: Tolerance) -> Rate:
    prompts = {d.prompt for arm in arms for d in arm.divergences if is_hard(d, allowed)}
    return rate(len(prompts), max((arm.prompts for arm in arms), default=0))
