"""The demand that the command line of `loadgen plan` names."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pvariance

from loadgen.analysis.capacity_model import Demand
from loadgen.commands import units
from loadgen.errors import UsageError

PEAK_S = 60.0
"""A fleet must carry a trace's busiest minute, not its mean."""


def demand_of(
    rate: str | None, users: int | None, think: str | None, trace: Path | None, mix: str | None
) -> Demand | None:
    """The demand; None if none was given. UsageError if there are two, or users without a think time."""
    if sum(given is not None for given in (rate, users, trace)) > 1:
        raise UsageError("--rate, --users and --trace are three ways to say the same: give one of them.")
    if (users is None) != (think is None):
        raise UsageError(
            "--users and --think belong together: users are not requests in flight, for they read and type in between; "
            "give both, like --users 400 --think 20s."
        )
    shares = units.mix(mix) if mix is not None else ()
    if users is not None and think is not None:
        return Demand(users=users, think_s=units.duration(think, "--think"), shares=shares)
    if rate is not None:
        return Demand(rate_per_s=units.rate(rate), shares=shares)
    if trace is not None:
        peak, words = of_trace(trace)
        return Demand(rate_per_s=peak, source=words, shares=shares)
    if shares:
        raise UsageError("--mix shares out a demand; give one with --rate, --users or --trace.")
    return None


def of_trace(path: Path) -> tuple[float, str]:
    """(requests/s in the busiest minute, where it comes from and how bursty it is)."""
    from loadgen.workloads.formats.traces import read_trace

    times = read_trace(path).times_s
    if len(times) < 2 or times[-1] <= times[0]:
        raise UsageError(f"{path} has too few arrivals to tell a rate; give a trace of a minute or more.")
    length = times[-1] - times[0]
    mean = len(times) / length
    peak = busiest(times, PEAK_S) / PEAK_S if length > PEAK_S else mean
    words = f"the busiest minute of {path.name}, whose mean is {mean:.3g}/s"
    spread = dispersion(times)
    if spread is not None and spread > 1.5:
        words += f"; its arrivals are burstier than Poisson ({spread:.1f}x the variance), so leave more headroom"
    return peak, words


def busiest(times: Sequence[float], span_s: float) -> int:
    """The most arrivals in any stretch of that length."""
    return max(bisect_left(times, start + span_s) - i for i, start in enumerate(times))


def dispersion(times: Sequence[float], bin_s: float = 1.0) -> float | None:
    """Variance / mean of the arrivals per second: 1 for Poisson; None below ten seconds."""
    bins = int((times[-1] - times[0]) / bin_s)
    if bins < 10:
        return None
    counts = [0] * bins
    for time_s in times:
        index = int((time_s - times[0]) / bin_s)
        if index < bins:
            counts[index] += 1
    return pvariance(counts) / fmean(counts)
