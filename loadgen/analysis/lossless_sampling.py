"""Sampled answers: do both servers draw their tokens from the same distribution?"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from loadgen.analysis.lossless_drafts import FEWEST_ACCEPTED, not_tested_because
from loadgen.analysis.lossless_model import Drafted, Place, PlaceFinding, Quality, SamplingFinding

MARGIN = 0.1
"""Total variation distance that is still called the same quality at one place."""
ALPHA = 0.01
NEGLIGIBLE_TV = 0.01
"""Rounding of logits by 0.02 to 0.04 nat moves about so much; a sure difference below it is not called one."""
FIRST_LOOK = 499
PERMUTATIONS = 9999
ENOUGH_ABOVE = 25
"""So many draws above the observed value in the first look end it: p is then near 0.05 or more (Besag, Clifford 1991).
"""
LARGEST_BINS = 12
SMALLEST_POOLED = 10
"""Tokens seen less often in both samples together share one bin: expected counts stay at 5 (Cochran 1954)."""
POWER = 0.8
_Z95 = 1.6448536269514722
_Ints = npt.NDArray[np.int64]


def judge_sampling(
    places: Sequence[Place],
    control: Sequence[Place],
    drafted: Drafted,
    *,
    temperature: float,
    samples: int,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    seed: int = 0,
) -> SamplingFinding:
    """The verdict at one temperature: `places` against the profile, `control` the baseline against itself."""
    found = compare_places(places, alpha, seed)
    baseline = compare_places(control, alpha, seed + 1)
    quality, reason = _verdict(found, baseline, not_tested_because(drafted, _cure(drafted, samples)), margin, alpha)
    return SamplingFinding(quality, reason, temperature, samples, margin, alpha, found, baseline, drafted)


def compare_places(places: Sequence[Place], alpha: float, seed: int) -> tuple[PlaceFinding, ...]:
    """Each place with its distance, p-value and power; p-values also after Holm (1979) over all places.

    The statistic is G (log-likelihood ratio), its p-value comes from random relabelling with both margins fixed
    (multivariate hypergeometric draws), so it is exact whatever the counts (Ernst 2004).
    """
    rng = np.random.default_rng(seed)
    tables = [_table(place) for place in places]
    p_values = [_permutation_p(table, rng) for table in tables]
    adjusted = _holm(p_values)
    return tuple(
        PlaceFinding(
            prefix=place.prefix,
            position=place.position,
            n=(int(table[0].sum()), int(table[1].sum())),
            tv=_tv(table),
            tv_upper95=_tv_upper(table),
            p=p,
            p_holm=holm,
            detectable_tv=detectable_tv(table, alpha / len(places)),
        )
        for place, table, p, holm in zip(places, tables, p_values, adjusted, strict=True)
    )


def detectable_tv(table: _Ints, level: float) -> float:
    """The distance that a test at `level` calls with 80 % power, were it moved from the largest bin to the next one:
    there it is hardest to see. By the noncentral chi-square of G, whose noncentrality is the G of the true shares
    (Agresti, Categorical Data Analysis, 6.6); never below what a token that was never seen before would need, since
    chi-square is too hopeful for small counts.
    """
    n = 2.0 / sum(1.0 / max(int(row.sum()), 1) for row in table)
    shares = np.sort(table.sum(axis=0) / max(table.sum(), 1))[::-1]
    needed = math.ceil(1.0 + math.log2(1.0 / level))  # k new tokens, all of one server, whichever: chance 2 · 2^-k
    least = min(1.0, (needed + 0.84 * math.sqrt(needed) + 0.5) / n)
    if shares.size < 2:
        return least
    wanted = _noncentrality(shares.size - 1, level)
    largest, second = float(shares[0]), float(shares[1])

    def missing(shift: float) -> float:
        return n * (_divergence(largest, largest - shift) + _divergence(second, second + shift)) - wanted

    if missing(largest) <= 0:
        return 1.0
    shift: float = optimize.brentq(missing, 0.0, largest)
    return max(least, shift)


def _divergence(p: float, q: float) -> float:
    """One bin's part of G per observation of each sample: 2 (p ln(p / m) + q ln(q / m)), m their mean."""
    m = (p + q) / 2
    return 2 * sum(x * math.log(x / m) for x in (p, q) if x > 0)


def _cure(drafted: Drafted, samples: int) -> str:
    """How many samples would do, from what these accepted."""
    if not drafted.accepted_tokens:
        return "take a workload that repeats its input (code-edit)"
    needed = math.ceil(samples * FEWEST_ACCEPTED / drafted.accepted_tokens / 100) * 100
    return f"take a workload that repeats its input (code-edit), or --samples {needed}"


def _verdict(
    found: Sequence[PlaceFinding], control: Sequence[PlaceFinding], untested: str | None, margin: float, alpha: float
) -> tuple[Quality, str]:
    differing = [place for place in found if _differs(place, alpha)]
    if any(_differs(place, alpha) for place in control):
        return Quality.NOT_TESTED, (
            "the baseline's own samples differ from each other, so the server is not stable; look for other traffic "
            "or batch-dependent kernels (VLLM_BATCH_INVARIANT=1)"
        )
    if differing:
        worst = max(differing, key=lambda place: place.tv)
        first = any(place.position == 1 for place in differing)
        why = ", already at the first token, which no draft touches: more than the speculation differs" if first else ""
        return Quality.DIFFERS, (
            f"{worst.tv:.0%} of its tokens at position {worst.position} are other ones "
            f"(p = {worst.p_holm:.1g} after Holm){why}"
        )
    if untested is None and not found:
        untested = "no draft was accepted in the greedy answers, so there is no place to sample at"
    if untested:
        return Quality.NOT_TESTED, untested
    widest = max(found, key=lambda place: place.tv_upper95)
    if widest.tv_upper95 > margin:
        factor = (widest.tv_upper95 / margin) ** 2
        return Quality.NOT_TESTED, (
            f"the samples leave room for a distance of {widest.tv_upper95:.2f}, above the margin of {margin:g}; take "
            f"--samples {math.ceil(sum(widest.n) / 2 * factor / 100) * 100}"
        )
    return Quality.SAME, ""


def _differs(place: PlaceFinding, alpha: float) -> bool:
    return place.p_holm < alpha and place.tv > NEGLIGIBLE_TV


def _table(place: Place) -> _Ints:
    """Counts of shape (2, bins): the likeliest tokens each in a bin of its own, the rest together."""
    pooled = {
        token: place.baseline.get(token, 0) + place.other.get(token, 0) for token in {*place.baseline, *place.other}
    }
    ranked = sorted(pooled, key=lambda token: (-pooled[token], token))
    own = [token for token in ranked[:LARGEST_BINS] if pooled[token] >= SMALLEST_POOLED]
    rows = []
    for counts in (place.baseline, place.other):
        kept = [counts.get(token, 0) for token in own]
        rows.append([*kept, sum(counts.values()) - sum(kept)])
    table = np.array(rows, dtype=np.int64)
    return table[:, table.sum(axis=0) > 0]


def _permutation_p(table: _Ints, rng: np.random.Generator) -> float:
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    pooled = table.sum(axis=0)
    seen = _g(table[0][None, :], pooled)[0]
    above = done = 0
    for wanted in (FIRST_LOOK, PERMUTATIONS):
        drawn = rng.multivariate_hypergeometric(pooled, int(table[0].sum()), size=wanted - done, method="marginals")
        # A small slack: equal tables must count as equal whatever the rounding of their logarithms.
        above += int((_g(drawn, pooled) >= seen - 1e-9).sum())
        done = wanted
        if above >= ENOUGH_ABOVE:
            break
    return (1 + above) / (done + 1)


def _g(first: _Ints, pooled: _Ints) -> npt.NDArray[np.float64]:
    """G of each row of `first` (the other sample is the rest of `pooled`), up to terms that the margins fix."""
    second = pooled - first
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first), 0.0) + np.where(second > 0, second * np.log(second), 0.0)
    result: npt.NDArray[np.float64] = 2.0 * terms.sum(axis=1)
    return result


def _holm(p_values: Sequence[float]) -> list[float]:
    order = np.argsort(p_values)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def _tv(table: _Ints) -> float:
    p, q = (row / max(row.sum(), 1) for row in table)
    return float(np.abs(p - q).sum() / 2)


def _tv_upper(table: _Ints) -> float:
    """One-sided 95 % bound. The plug-in distance lies above the true one on average, so the bound is conservative;
    its spread is that of the share of the tokens that one server says more often.
    """
    n, m = (int(row.sum()) for row in table)
    if not n or not m:
        return 1.0
    more = table[0] / n > table[1] / m
    p = (float(table[0][more].sum()) + 0.5) / (n + 1)
    q = (float(table[1][more].sum()) + 0.5) / (m + 1)
    return min(1.0, _tv(table) + _Z95 * math.sqrt(p * (1 - p) / n + q * (1 - q) / m))


@lru_cache(maxsize=256)
def _noncentrality(degrees: int, level: float) -> float:
    """The noncentrality at which a chi-square test at `level` has 80 % power."""
    critical = float(stats.chi2.isf(level, degrees))
    found: float = optimize.brentq(lambda x: float(stats.ncx2.sf(critical, degrees, x)) - POWER, 1e-6, 1e4)
    return found
