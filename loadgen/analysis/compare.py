"""Two runs against each other: what differs in how they were made, and what changed, with intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from loadgen.analysis.checks import check_cell, contexts_of
from loadgen.analysis.model import BreakEven, Estimate, Findings
from loadgen.analysis.ratios import MIN_N, LogSample, mean_and_sd, t_quantile, units
from loadgen.store.model import CellResult, Condition, Manifest, ServerFacts

CLIENT_FACTS = frozenset({"cpus", "machine", "system", "python"})
FIELDS = (
    "engine",
    "model",
    "hardware",
    "vllm",
    "profiles",
    "against",
    "workloads",
    "lengths",
    "temperature",
    "sampling",
    "seed",
    "client",
    "prompts",
    "server-settings",
)
"""All that two runs may differ in."""
SETTLED = ("engine", "model", "hardware", "vllm")
"""Where one of these differs, server settings follow from it."""


@dataclass(frozen=True)
class RunFacts:
    """One run with what the analysis says of it."""

    manifest: Manifest
    findings: Findings
    cells: tuple[CellResult, ...]
    servers: tuple[ServerFacts, ...]


@dataclass(frozen=True)
class Difference:
    """One way in which two runs were made differently."""

    field: str
    before: str
    after: str


@dataclass(frozen=True)
class Change:
    """One figure of one profile at one level, second run / first run."""

    condition: Condition
    profile: str
    concurrency: int
    measure: str
    """`output_tokens_per_s`, `tpot`, `ttft`: medians or means of cells; above 1 is more, which is worse for times."""
    ratio: Estimate
    better: bool | None
    """None where the interval holds 1 or there is none."""
    p_value: float | None
    n: tuple[int, int]


@dataclass(frozen=True)
class TurnChange:
    """The break-even of one profile in either run."""

    condition: Condition
    profile: str
    before: BreakEven
    after: BreakEven


@dataclass(frozen=True)
class Comparison:
    """Everything that changed from the first run to the second."""

    before: str
    after: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    changes: tuple[Change, ...]
    turns: tuple[TurnChange, ...]
    surely_worse: tuple[Change, ...]
    """Losses in output tokens/s that stand after Holm's correction over all of them (5 % family-wise)."""
    sentence: str
    simulated: tuple[bool, bool] = (False, False)
    """Whether a simulator gave the figures of the first and of the second run."""


Figure = Callable[[CellResult], float | None]
MEASURES: tuple[tuple[str, Figure, bool], ...] = (
    ("output_tokens_per_s", lambda cell: cell.output_tokens_per_s, True),
    ("tpot", lambda cell: cell.tpot_s.mean, False),
    ("ttft", lambda cell: cell.ttft_s.p50, False),
)
"""(name, figure, whether more is better)."""


def facts_of(run: RunFacts) -> dict[str, object]:
    """Field → value of all that must be equal in two runs but for what is compared."""
    manifest = run.manifest
    hardware = {k: v for k, v in manifest.hardware.items() if k not in CLIENT_FACTS and v is not None}
    plan = manifest.settings.get("plan", {})
    return {
        "engine": manifest.engine,
        "model": run.findings.model,
        "hardware": hardware or "default",
        "vllm": run.findings.vllm_version,
        "profiles": {
            name: _drafting(manifest.methods.get(name, "none"), manifest.num_speculative_tokens.get(name))
            for name in sorted(manifest.profiles)
        },
        "against": manifest.against,
        "workloads": sorted({condition.workload for condition in manifest.conditions}),
        "lengths": {
            **{
                f"{name} input tokens": sorted({c.input_tokens for c in manifest.conditions if c.workload == name})
                for name in sorted({c.workload for c in manifest.conditions})
            },
            "most output tokens": plan.get("max_tokens") if isinstance(plan, Mapping) else None,
        },
        "temperature": sorted({condition.temperature for condition in manifest.conditions}),
        "sampling": {k: v for k, v in manifest.sampling.items() if k not in ("seed", "temperature")},
        "seed": manifest.seed,
        "client": {k: manifest.hardware.get(k) for k in ("cpus", "machine")},
    }


def differences(before: RunFacts, after: RunFacts) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """(differences, notes). Prompts count only where seed, workloads and lengths are equal, server settings only where
    engine, model, hardware and version are: else they follow.
    """
    first, second = facts_of(before), facts_of(after)
    found = [Difference(name, *texts) for name in first if (texts := differ(first[name], second[name], name))]
    names = {difference.field for difference in found}
    notes: list[str] = []
    if not names & {"seed", "workloads", "lengths"} and _prompts_differ(before.cells, after.cells):
        found.append(Difference("prompts", "their hashes", "differ at a level and repeat of both"))
    settings = _settings(before.servers, after.servers)
    if settings and names & set(SETTLED):
        notes.append(f"Server settings differ too, as may follow: {', '.join(settings)}.")
    elif settings:
        found.append(Difference("server-settings", ", ".join(settings), "other values"))
    return tuple(found), tuple(notes)


def differ(first: object, second: object, field: str) -> tuple[str, str] | None:
    """Both values in words where they differ, else None. Lengths are compared for the workloads of both runs: that a
    workload is missing is a difference of its own, not a second one.
    """
    if field == "lengths" and isinstance(first, Mapping) and isinstance(second, Mapping):
        other = [key for key in first if key in second and first[key] != second[key]]
        first, second = ({key: value[key] for key in other} for value in (first, second))
    return None if first == second else (_text(first), _text(second))


def _drafting(method: str, k: int | None) -> str:
    return f"{method} K = {k}" if k else "no speculation" if method == "none" else method


def compare(before: RunFacts, after: RunFacts) -> Comparison:
    """What changed, at the levels, profiles and conditions of both; only valid cells count."""
    found, notes = differences(before, after)
    first, second = _by_place(before), _by_place(after)
    both = sorted(first.keys() & second.keys())
    changes = [change for place in both for change in _changes(place, first[place], second[place])]
    lost = [c for c in changes if c.measure == "output_tokens_per_s" and c.p_value is not None]
    worse = tuple(c for c in _holm(lost) if c.ratio.value < 1)
    alone = len(first.keys() ^ second.keys())
    if alone:
        notes = (*notes, f"{alone} levels of one run have no valid counterpart in the other and are left out.")
    return Comparison(
        before=before.manifest.run_id,
        after=after.manifest.run_id,
        differences=found,
        notes=notes,
        changes=tuple(changes),
        turns=tuple(_turns(before.findings, after.findings)),
        surely_worse=worse,
        sentence=_sentence(changes, worse),
        simulated=(before.manifest.simulated, after.manifest.simulated),
    )


Place = tuple[Condition, str, int]


def _by_place(run: RunFacts) -> dict[Place, list[CellResult]]:
    contexts = contexts_of(run.manifest, run.cells)
    found: dict[Place, list[CellResult]] = {}
    for cell in run.cells:
        if not any(check.voids for check in check_cell(cell, contexts[cell.key.profile])):
            found.setdefault((cell.key.condition, cell.key.profile, cell.key.level), []).append(cell)
    return found


def _changes(place: Place, first: Sequence[CellResult], second: Sequence[CellResult]) -> list[Change]:
    condition, profile, level = place
    found = []
    for name, figure, more_is_better in MEASURES:
        samples = [_logs(cells, figure) for cells in (first, second)]
        if not all(samples):
            continue
        ratio, p_value = welch(samples[0], samples[1])
        sure = ratio.ci95 is not None and not ratio.ci95[0] <= 1 <= ratio.ci95[1]
        better = (ratio.value > 1) == more_is_better if sure else None
        sizes = (len(samples[0]), len(samples[1]))
        found.append(Change(condition, profile, level, name, ratio, better, p_value, sizes))
    return found


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[Estimate, float | None]:
    """exp of the difference of mean logarithms with its 95 % interval, and the two-sided p; no interval below n = 3.

    B. L. Welch, Biometrika 34, 1947: runs are not paired, for each has its own servers and its own time.
    """
    (m1, s1), (m2, s2) = mean_and_sd(first), mean_and_sd(second)
    n = min(len(first), len(second))
    if n < MIN_N or s1 is None or s2 is None:
        return Estimate(math.exp(m2 - m1), n), None
    v1, v2 = s1**2 / len(first), s2**2 / len(second)
    if v1 + v2 == 0:
        return Estimate(math.exp(m2 - m1), n, (math.exp(m2 - m1), math.exp(m2 - m1))), 1.0 if m1 == m2 else 0.0
    degrees = (v1 + v2) ** 2 / (v1**2 / (len(first) - 1) + v2**2 / (len(second) - 1))
    error = math.sqrt(v1 + v2)
    half = t_quantile(degrees) * error
    p_value = float(2 * stats.t.sf(abs(m2 - m1) / error, degrees))
    return Estimate(math.exp(m2 - m1), n, (math.exp(m2 - m1 - half), math.exp(m2 - m1 + half))), p_value


def _holm(changes: Sequence[Change], alpha: float = 0.05) -> list[Change]:
    """Those whose p stands (S. Holm, Scand. J. Statist. 6, 1979)."""
    ordered = sorted(changes, key=lambda c: c.p_value if c.p_value is not None else 1.0)
    kept = []
    for rank, change in enumerate(ordered):
        if change.p_value is None or change.p_value > alpha / (len(ordered) - rank):
            break
        kept.append(change)
    return kept


def _logs(cells: Sequence[CellResult], figure: Figure) -> tuple[float, ...]:
    values = [(cell.key.session, figure(cell)) for cell in cells]
    return units([LogSample(session, math.log(value)) for session, value in values if value is not None and value > 0])


def _turns(before: Findings, after: Findings) -> list[TurnChange]:
    second = {(c.condition, p.profile): p for c in after.conditions for p in c.profiles}
    return [
        TurnChange(c.condition, p.profile, p.break_even["output_tokens_per_s"], other.break_even["output_tokens_per_s"])
        for c in before.conditions
        for p in c.profiles
        if (other := second.get((c.condition, p.profile))) is not None
    ]


def _prompts_differ(first: Sequence[CellResult], second: Sequence[CellResult]) -> bool:
    hashes = [
        {(c.key.condition, c.key.level, c.key.repeat, c.key.session): c.prompts_sha256 for c in cells}
        for cells in (first, second)
    ]
    return any(hashes[0][place] != hashes[1][place] for place in hashes[0].keys() & hashes[1].keys())


def _settings(first: Sequence[ServerFacts], second: Sequence[ServerFacts]) -> list[str]:
    """Effective settings that both runs know and that differ, as `profile: key`."""
    one, two = ({server.profile: server.effective for server in servers} for servers in (first, second))
    return [
        f"{profile}: {key}"
        for profile in sorted(one.keys() & two.keys())
        for key in sorted(one[profile].keys() & two[profile].keys())
        if one[profile][key] != two[profile][key]
    ]


def _text(value: object) -> str:
    """A value as a person writes it: no brackets and no quotes."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return " and ".join(_text(one) for one in value) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "not set" if value is None else str(value)


def _sentence(changes: Sequence[Change], worse: Sequence[Change]) -> str:
    rates = [change for change in changes if change.measure == "output_tokens_per_s"]
    if not rates:
        return "Nothing can be compared: the runs share no valid level."
    if worse:
        worst = min(worse, key=lambda change: change.ratio.value)
        return (
            f"The second run is surely slower at {len(worse)} of {len(rates)} places, most at {worst.profile} with "
            f"{worst.concurrency} in flight on {worst.condition.workload}: {worst.ratio.value:.2f}x the tokens/s."
        )
    sure = [change for change in rates if change.better]
    if sure:
        best = max(sure, key=lambda change: change.ratio.value)
        return (
            f"The second run is faster at {len(sure)} of {len(rates)} places, most at {best.profile} with "
            f"{best.concurrency} in flight on {best.condition.workload}: {best.ratio.value:.2f}x the tokens/s."
        )
    if not any(change.ratio.ci95 for change in rates):
        return f"Nothing can be told from noise: no interval without {MIN_N} repeats in either run."
    return f"No change in tokens/s can be told from noise at any of {len(rates)} places."
