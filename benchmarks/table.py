"""The results as Markdown tables, in which docs/performance.md takes them over."""

from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import Figures, Spread, differences, ratios, spread
from benchmarks.scenarios import Scenario

Runs = Mapping[str, Sequence[Figures | None]]
"""By client, one entry a round; None where a run failed."""

HEAD = (
    "client",
    "CPU s per 1M events",
    "x reference",
    "events per CPU s",
    "TTFT error mean / p99 ms",
    "beyond reference ms",
    "events/s",
    "of ideal",
    "core busy",
    "n",
)


def scenario_table(scenario: Scenario, runs: Runs, reference: str) -> str:
    """Medians over the rounds, with [least, most] where it tells something."""
    lines = [f"### {scenario.name}: {scenario.what}", "", _row(HEAD), _row(["---"] * len(HEAD))]
    for client, rounds in runs.items():
        lines.append(_row(_cells(client, rounds, runs.get(reference, [None] * len(rounds)))))
    return "\n".join(lines)


def command_table(runs: Mapping[str, Runs]) -> str:
    """What whole commands cost beside the load, and every client's peak memory."""
    head = ("client", "scenario", "CPU s beside the load (start, warm-up, report)", "peak RSS MB", "n")
    lines = ["### Beside the load", "", _row(head), _row(["---"] * len(head))]
    for scenario, of_client in runs.items():
        for client, rounds in of_client.items():
            beside = _values(rounds, lambda one: one.beside_load_cpu_s)
            rss = spread(_values(rounds, lambda one: one.peak_rss_mb))
            cells = (client, scenario, _range(spread(beside), 2), _range(rss, 0), str(rss.n if rss else 0))
            lines.append(_row(cells))
    return "\n".join(lines)


def _cells(client: str, rounds: Sequence[Figures | None], reference: Sequence[Figures | None]) -> list[str]:
    def of(which: Callable[[Figures], float | None]) -> tuple[list[float | None], list[float | None]]:
        return _values(rounds, which), _values(reference, which)

    cpu, reference_cpu = of(lambda one: one.cpu_s_per_million)
    mean, reference_mean = of(lambda one: one.ttft_error_mean_ms)
    p99, reference_p99 = of(lambda one: one.ttft_error_p99_ms)
    shown = [one for one in rounds if one is not None]
    per_cpu_s = spread([1e6 / value if value else None for value in cpu])
    return [
        client,
        _range(spread(cpu), 1),
        _range(ratios(cpu, reference_cpu), 2),
        _middle(per_cpu_s, 0),
        f"{_middle(spread(mean), 2)} / {_middle(spread(p99), 2)}" + _star(shown),
        f"{_middle(differences(mean, reference_mean), 2)} / {_middle(differences(p99, reference_p99), 2)}",
        _middle(spread(_values(rounds, lambda one: one.events_per_s)), 0),
        _range(spread(_values(rounds, lambda one: one.of_ideal)), 3),
        _middle(spread(_values(rounds, lambda one: one.core_share)), 2),
        f"{len(shown)} of {len(rounds)}",
    ]


def _star(shown: Sequence[Figures]) -> str:
    """Marks errors that come from the client's own mean and p99 instead of matched requests."""
    return " \\*" if shown and all(one.ttft_n == 0 for one in shown) else ""


def _values(rounds: Sequence[Figures | None], which: Callable[[Figures], float | None]) -> list[float | None]:
    return [None if one is None else which(one) for one in rounds]


def _middle(value: Spread | None, digits: int) -> str:
    return "–" if value is None else f"{value.median:,.{digits}f}"


def _range(value: Spread | None, digits: int) -> str:
    if value is None or value.n < 2:
        return _middle(value, digits)
    return f"{value.median:,.{digits}f} [{value.least:,.{digits}f}, {value.most:,.{digits}f}]"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
