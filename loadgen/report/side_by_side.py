"""Several runs on one page: what they ran on, where they turn, and their speed-ups in one chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.analysis.compare import RunFacts, differ, facts_of
from loadgen.analysis.model import ConditionFinding, LevelFinding, ProfileFinding
from loadgen.report.chart import Chart
from loadgen.report.compare_text import turn_words
from loadgen.report.depth import depths
from loadgen.report.html import render_page
from loadgen.report.plan_rows import Table
from loadgen.report.traces import Figure, Series, band, layout_of, line_at_one, lines
from loadgen.report.words import clean, condition_words, finite, number, ratio_of, ratio_with_interval, value_of
from loadgen.store.model import Condition


@dataclass(frozen=True)
class Section:
    """One condition over all runs that have it."""

    anchor: str
    title: str
    charts: tuple[Chart, ...]
    speedups: Table


def letters(count: int) -> list[str]:
    """A, B, … Z, A2, B2, …: short names in charts."""
    return [f"{chr(65 + i % 26)}{i // 26 + 1 if i >= 26 else ''}" for i in range(count)]


def render_side_by_side(runs: Sequence[RunFacts]) -> str:
    """The whole page as text."""
    names = letters(len(runs))
    sections = [_section(i, condition, runs, names) for i, condition in enumerate(_conditions(runs), 1)]
    figures = {f"{s.anchor}-{chart.key}": chart.figure for s in sections for chart in s.charts}
    return render_page(
        "side_by_side.html.j2",
        figures,
        runs=runs,
        simulated=[name for name, run in zip(names, runs, strict=True) if run.manifest.simulated],
        overview=run_table(runs),
        differing=differing(runs),
        answers=[(name, run.findings.answer) for name, run in zip(names, runs, strict=True)],
        sections=sections,
    )


def run_table(runs: Sequence[RunFacts]) -> Table:
    """One row per run, profile and condition: model, GPU, version, method, K, and where it turns."""
    header = ["run", "profile", "method", "K", "workload", "turn", "model", "hardware", "vLLM", "engine", "folder"]
    rows = [
        [name, *_profile(profile, run, condition.condition.workload), *_made(run)]
        for name, run in zip(letters(len(runs)), runs, strict=True)
        for condition in run.findings.conditions
        for profile in condition.profiles
    ]
    return header, rows


def _made(run: RunFacts) -> list[str]:
    manifest = run.manifest
    return [
        clean(run.findings.model or "unknown"),
        clean(_hardware(facts_of(run)["hardware"])),
        clean(run.findings.vllm_version or "unknown"),
        clean(manifest.engine) + (" (SIMULATED)" if manifest.simulated else ""),
        clean(manifest.run_id),
    ]


def _profile(profile: ProfileFinding, run: RunFacts, workload: str) -> list[str]:
    depth = depths(run.manifest).get(profile.profile)
    turn = turn_words(profile.break_even["output_tokens_per_s"])
    return [clean(profile.profile), clean(profile.method), "–" if depth is None else str(depth), clean(workload), turn]


def differing(runs: Sequence[RunFacts]) -> list[str]:
    """The fields in which the runs are not all equal."""
    facts = [facts_of(run) for run in runs]
    return [name for name in facts[0] if any(differ(facts[0][name], other[name], name) for other in facts[1:])]


def _hardware(value: object) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _conditions(runs: Sequence[RunFacts]) -> list[Condition]:
    return sorted({c.condition for run in runs for c in run.findings.conditions})


def _section(number_: int, condition: Condition, runs: Sequence[RunFacts], names: Sequence[str]) -> Section:
    series = _series(condition, runs, names)
    levels = sorted({level.concurrency for one in series for level in one.profile.levels})
    charts = (_speedups(series, levels), _throughput(series, levels)) if levels else ()
    drawn = tuple(chart for chart in charts if any(trace["x"] for trace in chart.figure["data"]))
    return Section(f"c{number_}", condition_words(condition), drawn, _table(series, levels))


def _series(condition: Condition, runs: Sequence[RunFacts], names: Sequence[str]) -> list[Series]:
    """Every run's profiles under the condition, named `A: ngram`."""
    found: list[ProfileFinding] = []
    for name, run in zip(names, runs, strict=True):
        for at in run.findings.conditions:
            found += _named(at, name) if at.condition == condition else []
    return [Series(profile, index) for index, profile in enumerate(found)]


def _named(at: ConditionFinding, name: str) -> list[ProfileFinding]:
    return [ProfileFinding(f"{name}: {p.profile}", p.method, p.levels, p.break_even) for p in at.profiles]


def _table(series: Sequence[Series], levels: Sequence[int]) -> Table:
    header = ["run and profile", *(f"{level} in flight" for level in levels)]
    rows = []
    for one in series:
        by_level = {level.concurrency: level for level in one.profile.levels}
        rows.append([clean(one.profile.profile), *(_cell(by_level.get(level)) for level in levels)])
    return header, rows


def _cell(level: LevelFinding | None) -> str:
    if level is None:
        return "–"
    return ratio_with_interval(level.speedup) if level.valid else "void"


def _speedups(series: Sequence[Series], levels: list[int]) -> Chart:
    data: list[Figure] = []
    for one in series:
        data += [band(one, lambda r: r.speedup), lines(one, lambda r: value_of(r.speedup), _speedup_hover)]
    layout = layout_of(levels, "speed-up", {"ticksuffix": "×", "rangemode": "normal"})
    layout["shapes"] = [line_at_one(levels)]
    shows = "Output tokens per second, each run's profile over its own baseline; bands are 95 % intervals."
    kept = [trace for trace in data if trace["x"]]
    return Chart("speedup", "Speed-up, runs side by side", shows, {"data": kept, "layout": layout}, wide=True)


def _throughput(series: Sequence[Series], levels: list[int]) -> Chart:
    data = [lines(one, lambda r: value_of(r.tokens_per_s), _rate_hover) for one in series]
    layout = layout_of(levels, "output tokens/s", {"rangemode": "tozero"})
    shows = "Output tokens per second of each run's profile."
    return Chart("throughput", "Throughput", shows, {"data": data, "layout": layout}, wide=True)


def _speedup_hover(level: LevelFinding) -> str:
    return f"{ratio_of(finite(value_of(level.speedup)))}, n = {level.n}"


def _rate_hover(level: LevelFinding) -> str:
    return f"{number(value_of(level.tokens_per_s))} tokens/s"
