"""The schedule of a run, as a person and as a script read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.findings import analyse, situation_of
from loadgen.analysis.goal import Goal, goal_of, within_words
from loadgen.analysis.model import Findings
from loadgen.analysis.recommendation import advise, schedules
from loadgen.analysis.recommendation_advice import Advice
from loadgen.analysis.schedule import Choice
from loadgen.analysis.schedule_ladder import LadderFinding
from loadgen.analysis.schedule_slo import out_words
from loadgen.analysis.schedule_text import as_option, as_yaml, speculative_config
from loadgen.analysis.verify_model import Claim
from loadgen.commands.conclude import find_verification, print_json, was_interrupted
from loadgen.commands.goal import judged, with_goal
from loadgen.errors import ExitCode
from loadgen.profiles.derive import with_k
from loadgen.profiles.loader import load_profile
from loadgen.report.words import headline, is_indicative
from loadgen.store.codec import builtins
from loadgen.store.folder import RunFolder


@dataclass(frozen=True)
class Found:
    """One run's advice; None where it advises nothing."""

    run_id: str
    findings: Findings
    goal: Goal
    advice: Advice | None
    ladders: tuple[LadderFinding, ...]
    config: dict[str, Any] | None
    """The `speculative-config` to set; None for no speculation."""
    verdict: str | None


def find(folder: RunFolder, asked: Goal | None = None) -> Found:
    """What the run advises under this goal; None: its own."""
    manifest, servers = with_goal(folder.manifest(), asked), folder.servers()
    slo = judged(folder, manifest)
    findings = analyse(manifest, folder.cells(), servers, interrupted=was_interrupted(folder.events()), slo=slo)
    situation = situation_of(manifest, servers, slo)
    advice = advise(findings.conditions, situation)
    verification = find_verification(folder)
    own = verification is not None and advice is not None and _tested(verification.claim, advice, goal_of(manifest))
    return Found(
        folder.run_id,
        findings,
        goal_of(manifest),
        advice,
        schedules(findings.conditions, situation),
        _config(folder, advice) if advice else None,
        verification.verdict.value if verification and own else None,
    )


def _tested(claim: Claim, advice: Advice, goal: Goal) -> bool:
    """True if the claim is this advice, under this goal."""
    told = advice.recommendation
    return (claim.setting, claim.value) == (told.setting, told.value) and (claim.objective, claim.slos) == (
        goal.objective,
        goal.slos,
    )


def exit_code(found: Sequence[Found]) -> ExitCode:
    """0 if every run advises something, else 3."""
    return ExitCode.ANSWER if all(one.advice for one in found) else ExitCode.NO_VERDICT


def print_found(found: Sequence[Found], *, as_json: bool) -> None:
    """Prints each run's advice."""
    from loadgen.report.summary import dumps

    for one in found:
        print_json(dumps(as_data(one)) if as_json else as_text(one))


def as_data(found: Found) -> dict[str, Any]:
    """The advice as plain data."""
    if found.advice is None:
        return {"run": found.run_id, "choice": None, "why": found.findings.answer}
    advice = found.advice
    return {
        "run": found.run_id,
        "choice": advice.choice.value,
        "objective": found.goal.objective,
        "slos": {one.name: one.limit_s for one in found.goal.slos},
        "no_setting_keeps_them_at": advice.unmet,
        "profile": advice.profile,
        "condition": builtins(advice.condition),
        "setting": advice.recommendation.setting,
        "value": advice.recommendation.value,
        "static_k": advice.static_k,
        "by_requests_in_flight": advice.in_flight,
        "by_requests_per_step": advice.ranges,
        "speculative_config": found.config,
        "levels": _levels(found),
        "candidate": advice.recommendation.candidate and found.verdict is None,
        "when": advice.recommendation.when,
        "beyond": advice.recommendation.beyond,
        "interrupted": found.findings.interrupted,
        "indicative": is_indicative(found.findings),
        "holds_for": advice.recommendation.holds_for,
        "why": advice.recommendation.why,
        "verification": found.verdict,
    }


def as_text(found: Found) -> str:
    """The advice for a person: what to write, what it gains, why."""
    marks = _marks(found)
    if found.advice is None:
        return f"{found.run_id}: {marks}no schedule yet. {headline(found.findings)}\n"
    advice = found.advice
    parts = [f"{found.run_id}: {marks}{advice.recommendation.holds_for}{_by(found.goal)}", ""]
    if advice.recommendation.candidate and found.verdict is None:
        parts += ["Candidate, not measured as a schedule; what is safe until then stands below.", ""]
    if told := advice.recommendation.when:
        parts += [f"To be set {told}. {advice.recommendation.beyond}", ""]
    parts += _syntax(found, advice)
    parts += _table(found)
    checked = {None: "Not re-measured yet: run loadgen verify.", "holds": "Re-measured: it holds."}
    told = checked.get(found.verdict, f"Re-measured: {str(found.verdict).replace('_', ' ')}; see loadgen report.")
    return "\n".join([*parts, advice.recommendation.why, told]) + "\n"


def _marks(found: Found) -> str:
    """`SIMULATED, interrupted, indicative: not settled. `; empty for a whole run with enough repeats on hardware."""
    unsettled = ["interrupted"] if found.findings.interrupted else []
    unsettled += ["indicative"] if is_indicative(found.findings) else []
    words = [*(["SIMULATED"] if found.findings.simulated else []), *unsettled]
    return f"{', '.join(words)}{': not settled' if unsettled else ''}. " if words else ""


def _by(goal: Goal) -> str:
    """What is best by, where the advice does not say it itself."""
    return "" if goal.slos else f", by {goal.objective}"


def _syntax(found: Found, advice: Advice) -> list[str]:
    if found.config is None:
        return ["Leave speculative-config out.", ""]
    where = ""
    if advice.choice is Choice.TWO_POOLS:
        spans = [f"{first} to {last}" for first, last, k in advice.in_flight if k]
        where = f" of the pool that serves {' and '.join(spans)} requests in flight; the other pool has none"
    return [
        f"In the config file{where}:",
        "",
        as_yaml(found.config),
        "or on the command line:",
        "",
        as_option(found.config),
        "",
    ]


def _ladder(found: Found) -> LadderFinding | None:
    advice = found.advice
    if advice is None:
        return None
    return next((one for one in found.ladders if (one.of, one.condition) == (advice.profile, advice.condition)), None)


def _levels(found: Found) -> list[dict[str, Any]]:
    ladder = _ladder(found)
    return [builtins(level) for level in ladder.schedule.levels] if ladder else []


def _table(found: Found) -> list[str]:
    """What a schedule would give at each load, with intervals; only where there is a ladder."""
    ladder = _ladder(found)
    if ladder is None or not found.advice or found.advice.choice is Choice.NONE:
        return []
    priced = "measured as constant schedules" if ladder.costs_measured else "from static servers, so without its costs"
    rows = [f"A schedule ({priced}) by requests in flight:", ""]
    rows.append(f"{'conc':>6}  {'K':>2}  {'over no speculation':<22}  over static K = {ladder.schedule.static_k}")
    for level in ladder.schedule.levels:
        own = _with_interval(level.speedup, level.speedup_ci95)
        static = _with_interval(level.over_static, level.over_static_ci95)
        rows.append(f"{level.concurrency:>6}  {level.k:>2}  {own:<22}  {static}")
    out = out_words(ladder)
    if out and ladder.slo:
        rows += ["", f"Not surely {within_words(ladder.slo.slos)}, by requests in flight:", *out]
    return [*rows, ""]


def _with_interval(value: float, ci95: tuple[float, float] | None) -> str:
    return f"{value:.2f}x" + (f" ({ci95[0]:.2f} to {ci95[1]:.2f})" if ci95 else "")


def _config(folder: RunFolder, advice: Advice) -> dict[str, Any] | None:
    if advice.choice is Choice.NONE:
        return None
    source = load_profile(advice.profile, folder.path / "profiles")
    if source.speculative is None:
        return None
    ranges = advice.ranges if advice.choice is Choice.SCHEDULE else None
    k = max(k for _, _, k in ranges) if ranges else advice.static_k
    # Synthetic rates are as many as K, else vLLM refuses them.
    sized = with_k(source, k).speculative or source.speculative
    return speculative_config(sized.raw, ranges, k)
