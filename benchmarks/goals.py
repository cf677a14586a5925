"""What our client promises (issue 3), held against a result. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figures, Spread, differences, ratios, spread

REFERENCE, LOOP, COMMAND = "reference", "loadgen", "loadgen-load"
Results = Mapping[str, Mapping[str, Sequence[Figures | None]]]
"""By scenario and client, one entry a round; None where a run failed."""


@dataclass(frozen=True)
class Goal:
    """One promise with what was measured."""

    text: str
    limit: float
    at_most: bool
    measured: Spread | None
    """None: the scenario or the client was not part of the run."""

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the limit; None if it was not measured."""
        if self.measured is None:
            return None
        return self.measured.median <= self.limit if self.at_most else self.measured.median >= self.limit


def goals(results: Results) -> list[Goal]:
    """Every promise, measured or not."""

    def of(scenario: str, client: str, which: Callable[[Figures], float | None]) -> list[float | None]:
        rounds = results.get(scenario, {}).get(client, ())
        return [None if one is None else which(one) for one in rounds]

    def against(
        scenario: str,
        which: Callable[[Figures], float | None],
        how: Callable[[Sequence[float | None], Sequence[float | None]], Spread | None],
    ) -> Spread | None:
        mine, reference = of(scenario, LOOP, which), of(scenario, REFERENCE, which)
        return how(mine, reference) if len(mine) == len(reference) else None

    cpu = against("paced-32", lambda one: one.cpu_s_per_million, ratios)
    mean = against("paced-32", lambda one: one.ttft_error_mean_ms, differences)
    p99 = against("paced-32", lambda one: one.ttft_error_p99_ms, differences)
    ideal = spread(of("paced-256", LOOP, lambda one: one.of_ideal))
    core = spread(of("paced-256", LOOP, lambda one: one.core_share))
    saturated = spread(of("saturated", LOOP, lambda one: 1e6 / one.cpu_s_per_million))
    beside = spread(of("paced-32", COMMAND, lambda one: one.beside_load_cpu_s))
    memory = spread(
        [*of("memory", LOOP, lambda one: one.peak_rss_mb), *of("memory", COMMAND, lambda one: one.peak_rss_mb)]
    )
    return [
        Goal("CPU per event, times the reference's (32 streams)", 1.2, at_most=True, measured=cpu),
        Goal("TTFT error beyond the reference's, mean, ms (32 streams)", 1.0, at_most=True, measured=mean),
        Goal("TTFT error beyond the reference's, p99, ms (32 streams)", 2.0, at_most=True, measured=p99),
        Goal("share of the ideal rate (256 streams)", 0.97, at_most=False, measured=ideal),
        Goal("share of one core (256 streams)", 0.333, at_most=True, measured=core),
        Goal("events per CPU second (saturated)", 120_000, at_most=False, measured=saturated),
        Goal("CPU s of the whole command beside the load", 1.5, at_most=True, measured=beside),
        Goal("peak memory over 10 million events, MB", 300, at_most=True, measured=memory),
    ]


def goal_table(found: Sequence[Goal]) -> str:
    """Markdown: promise, limit, median [least, most], n, verdict."""
    lines = ["### Goals of issue 3", "", "| goal | limit | measured | n | met |", "| --- | --- | --- | --- | --- |"]
    words = {True: "yes", False: "**no**", None: "not measured"}
    for goal in found:
        value = goal.measured
        shown = "–" if value is None else f"{value.median:,.2f} [{value.least:,.2f}, {value.most:,.2f}]"
        limit = f"{'≤' if goal.at_most else '≥'} {goal.limit:,g}"
        lines.append(f"| {goal.text} | {limit} | {shown} | {value.n if value else 0} | {words[goal.met]} |")
    return "\n".join(lines)
