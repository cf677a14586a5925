"""Speed-ups: ratios of paired cells, with a t interval on their logarithms (docs/method.md, part 2)."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy import stats

from loadgen.analysis.model import Estimate
from loadgen.analysis.pairs import Pair

MIN_N = 3
"""No interval below three repeats: with two, the t factor is 12.7 and a bootstrap covers about half (issue 2)."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class LogSample:
    """Natural logarithm of one figure or ratio, and the session it was measured in."""

    session: int
    value: float


@dataclass(frozen=True)
class Measure:
    """A ratio of a pair. Above 1 is faster, but for `ttft`, where above 1 is a penalty."""

    name: str
    label: str
    ratio: Callable[[Pair], float | None]


def _throughput(pair: Pair) -> float | None:
    return quotient(pair.profile.output_tokens_per_s, pair.baseline.output_tokens_per_s)


def _tpot(pair: Pair) -> float | None:
    return quotient(pair.baseline.tpot_s.mean, pair.profile.tpot_s.mean)


def _e2e(pair: Pair) -> float | None:
    return quotient(pair.baseline.e2e_s.mean, pair.profile.e2e_s.mean)


def _ttft(pair: Pair) -> float | None:
    return quotient(pair.profile.ttft_s.p50, pair.baseline.ttft_s.p50)


THROUGHPUT = Measure("output_tokens_per_s", "output tokens/s", _throughput)
TPOT = Measure("tpot", "time per output token", _tpot)
E2E = Measure("e2e", "end-to-end latency", _e2e)
TTFT = Measure("ttft", "time to first token", _ttft)
BREAK_EVEN_MEASURES = (THROUGHPUT, TPOT)


def quotient(part: float | None, whole: float | None) -> float | None:
    """part / whole; None unless both are finite and above 0 (an empty distribution has no figures)."""
    if part is None or whole is None or not (part > 0 and whole > 0):
        return None
    value = part / whole
    return value if math.isfinite(value) and value > 0 else None


def log_ratios(pairs: Iterable[Pair], measure: Measure) -> tuple[LogSample, ...]:
    """ln of the measure's ratio for every pair that has it."""
    found = ((pair.key.session, measure.ratio(pair)) for pair in pairs)
    return tuple(LogSample(session, math.log(value)) for session, value in found if value is not None)


def units(samples: Sequence[LogSample]) -> tuple[float, ...]:
    """The independent observations, ascending: session means from three sessions on, else the samples themselves.

    Repeats of one server start share its luck, so they are no independent units once starts can be told apart. With
    fewer than three sessions the between-start part cannot be estimated: the interval is then one "within one server
    start" and is labelled so.
    """
    means = session_means(samples)
    if len(means) >= MIN_N:
        return tuple(sorted(means.values()))
    return tuple(sorted(sample.value for sample in samples))


def session_means(samples: Iterable[LogSample]) -> dict[int, float]:
    """The mean of each session's samples, by session number."""
    by_session: dict[int, list[float]] = {}
    for sample in samples:
        by_session.setdefault(sample.session, []).append(sample.value)
    return {number: math.fsum(values) / len(values) for number, values in sorted(by_session.items())}


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and standard deviation with n − 1 (None below two values). `values` must not be empty."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@lru_cache(maxsize=256)
def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided t quantile: 4.303 for two degrees of freedom at 95 %."""
    return float(stats.t.ppf(0.5 + confidence / 2, degrees))


def estimate(samples: Sequence[LogSample]) -> Estimate | None:
    """Geometric mean with its 95 % t interval (none below three units); None without samples.

    exp(mean ± t(n − 1) · s / √n) over the units. `n` counts units: sessions where there are three or more of them.
    """
    values = units(samples)
    if not values:
        return None
    mean, sd = mean_and_sd(values)
    if len(values) < MIN_N or sd is None:
        return Estimate(math.exp(mean), len(values))
    half = t_quantile(len(values) - 1) * sd / math.sqrt(len(values))
    return Estimate(math.exp(mean), len(values), (math.exp(mean - half), math.exp(mean + half)))


def estimate_ratio(pairs: Iterable[Pair], measure: Measure) -> Estimate | None:
    """The measure's ratio over the pairs; None if no pair has it."""
    return estimate(log_ratios(pairs, measure))


def estimate_figures(figures: Iterable[tuple[int, float | None]]) -> Estimate | None:
    """Geometric mean of (session, figure) values above 0, so that a ratio of two of them is the ratio's own mean."""
    kept = [LogSample(session, math.log(value)) for session, value in figures if value is not None and value > 0]
    return estimate(kept)
