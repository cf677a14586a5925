"""The capacity plan of a run: every setting under every condition against the objectives (docs/planning.md)."""

from collections.abc import Mapping, Sequence

from loadgen.analysis.answer import label
from loadgen.analysis.capacity_advice import advise, best_offer, plan_mix, strength
from loadgen.analysis.capacity_certain import further_words, is_sure, resolve_words
from loadgen.analysis.capacity_change import compose
from loadgen.analysis.capacity_model import (
    SCHEDULE_NAME,
    Advice,
    Demand,
    LoadPoint,
    Offer,
    OpenPoint,
    Plan,
)
from loadgen.analysis.capacity_offer import Setting, Wish, offer
from loadgen.analysis.capacity_words import capacity_words
from loadgen.analysis.ladder import ladder_of
from loadgen.analysis.model import ConditionFinding, Findings
from loadgen.errors import UsageError
from loadgen.store.model import Condition, Manifest

Points = Mapping[tuple[Condition, str], Sequence[LoadPoint]]
STATIC, CONSTANT = "static servers", "servers under constant schedules"
"""What a schedule's levels are put together from."""
OpenPoints = Mapping[tuple[Condition, str], Sequence[OpenPoint]]


def make_plan(findings: Findings, manifest: Manifest, points: Points, opened: OpenPoints, wish: Wish) -> Plan:
    """The plan. UsageError if a mix names a workload that was not measured."""
    conditions = sorted({condition for condition, _ in points})
    shares = _shares(conditions, wish.demand)
    offers: list[Offer] = []
    advice = []
    steps: dict[Condition, dict[str, float]] = {}
    for condition in conditions:
        settings = _settings(condition, findings, manifest, points, opened)
        own = tuple(offer(condition, setting, wish, shares.get(condition, 1.0)) for setting in settings)
        steps[condition] = {s.name: gain for s in settings if s.drafts and (gain := _tokens_per_step(s)) is not None}
        offers += own
        advice.append(advise(condition, own, manifest.against, steps[condition]))
    mix = None
    if wish.demand is not None and wish.demand.shares:
        parts = [(c, s, [o for o in offers if o.condition == c]) for c, s in shares.items()]
        mix = plan_mix(parts, wish, manifest.against)
    return Plan(
        run_id=manifest.run_id,
        simulated=manifest.simulated,
        model=findings.model,
        vllm_version=findings.vllm_version,
        slos=wish.slos,
        demand=wish.demand,
        hardware=wish.hardware,
        offers=tuple(offers),
        advice=tuple(advice),
        mix=mix,
        answer=_answer(offers, advice, manifest, wish.demand, mix.sentence if mix else ""),
        notes=(*_doubts(advice), *_mix_note(conditions, wish.demand), *_notes(offers, wish.demand)),
    )


def _settings(
    condition: Condition, findings: Findings, manifest: Manifest, points: Points, opened: OpenPoints
) -> list[Setting]:
    # Profiles for attribution (baseline-sync, the cost probe) explain; nobody would run them.
    names = [n for n in manifest.profiles if (condition, n) in points and _is_choice(n, manifest)]
    found = []
    rungs = ladder_of(manifest)
    for name in names:
        k = rungs[name].k if name in rungs else manifest.num_speculative_tokens.get(name)
        found.append(
            Setting(
                name,
                f"K = {k}" if k else "no speculation",
                tuple(points[condition, name]),
                tuple(opened.get((condition, name), ())),
                drafts=manifest.methods.get(name, "none") != "none",
            )
        )
    schedule = _schedule(condition, findings, manifest, points)
    return [*found, schedule] if schedule else found


def _is_choice(name: str, manifest: Manifest) -> bool:
    if name == manifest.against:
        return True
    return manifest.methods.get(name, "none") != "none" and not name.startswith("cost-probe")


def _schedule(condition: Condition, findings: Findings, manifest: Manifest, points: Points) -> Setting | None:
    """The recommended schedule as static servers would carry it; None without one, or on another workload."""
    advice = findings.recommendation
    if advice is None or advice.verified is False:
        return None
    value = advice.value.get("edges") if isinstance(advice.value, dict) else advice.value
    if not isinstance(value, (list, tuple)) or not value:
        return None
    ranges = [[int(part) for part in entry] for entry in value]
    depths = {k for _, _, k in ranges}
    rungs = ladder_of(manifest)
    under = {rung.k: name for name, rung in rungs.items() if rung.constant_schedule}
    static = {k: n for n, k in manifest.num_speculative_tokens.items() if n not in under.values()}
    static[0] = manifest.against
    # Servers under a constant schedule show what a schedule itself costs; static ones do not.
    servers, kind = (under, CONSTANT) if depths <= under.keys() else (static, STATIC)
    drafting = next((n for k, n in servers.items() if k in depths and k > 0), None)
    at = next((c for c in findings.conditions if c.condition == condition), None)
    if drafting is None or at is None:
        return None
    made = compose(ranges, _batches(at, drafting), {k: points.get((condition, n), ()) for k, n in servers.items()})
    if len({point.source for point in made}) < 2:
        return None
    text = ",".join(f"[{first},{last},{k}]" for first, last, k in ranges)
    return Setting(SCHEDULE_NAME, f"[{text}], put together from {kind}", made, drafts=True)


def _batches(at: ConditionFinding, profile: str) -> dict[int, float]:
    levels = [level for one in at.profiles if one.profile == profile for level in one.levels]
    return {level.concurrency: level.batch or float(level.concurrency) for level in levels}


def _tokens_per_step(setting: Setting) -> float | None:
    known = [point.tokens_per_step for point in setting.points if point.tokens_per_step is not None]
    return sum(known) / len(known) if known else None


def _shares(conditions: Sequence[Condition], demand: Demand | None) -> dict[Condition, float]:
    """Each condition's part of the demand; without a mix every one is looked at with the whole of it."""
    if demand is None or not demand.shares:
        return {}
    found: dict[Condition, float] = {}
    for workload, share in demand.shares:
        same = [condition for condition in conditions if condition.workload == workload]
        if len(same) != 1:
            known = ", ".join(sorted({condition.workload for condition in conditions}))
            why = "was not measured" if not same else "was measured under several conditions"
            raise UsageError(f"--mix names {workload}, which {why} in this run; it has {known}.")
        found[same[0]] = share
    return found


def _answer(
    offers: Sequence[Offer], advice: Sequence[Advice], manifest: Manifest, demand: Demand | None, mix: str
) -> str:
    """One sentence a condition and how they belong together, or the mix's own."""
    prefix = "SIMULATED: " if manifest.simulated else ""
    if mix:
        return prefix + mix
    conditions = [one.condition for one in advice]
    parts = [
        _part(label(one.condition, conditions), [o for o in offers if o.condition == one.condition], one, manifest)
        for one in advice
    ]
    text = "; ".join(parts) or "nothing can be planned, for no valid cell with single requests was found"
    chosen = [
        best
        for one in advice
        if (best := best_offer([o for o in offers if o.condition == one.condition], manifest.against)) is not None
    ]
    # where no setting is chosen, any that is still open may turn out to do
    none = {one.condition for one in advice if one.setting is None and not one.sure}
    unsure = [o for o in chosen if not is_sure(o)] + [o for o in offers if o.condition in none]
    ends = [resolve_words(unsure), further_words(chosen), _alternatives(conditions, demand)]
    return " ".join((f"{prefix}{text[:1].upper()}{text[1:]}.", *(end for end in ends if end)))


def _part(where: str, own: Sequence[Offer], advice: Advice, manifest: Manifest) -> str:
    """What one condition's best setting carries; that it is unresolved is said first."""
    start = f"on {where} " if advice.sure else f"unresolved on {where}: "
    best = best_offer(own, manifest.against)
    if best is None:
        return f"{start}no setting meets the objectives at any measured load"
    others = [o for o in own if o.setting == manifest.against and o is not best and strength(o) > 0]
    than = f" ({manifest.against}: {capacity_words(others[0])})" if others else ""
    carries = "carries" if advice.sure else "by its estimates carries"
    return f"{start}{best.setting} {carries} {capacity_words(best)}{than}"


def _alternatives(conditions: Sequence[Condition], demand: Demand | None) -> str:
    """How the answers for several workloads belong together: each has the whole demand."""
    if demand is None or len(conditions) < 2:
        return ""
    whole = f"{demand.users} users" if demand.users is not None else f"{demand.rate_per_s or 0.0:.3g} requests/s"
    return f"Each is for all {whole} on that workload alone: alternatives, not to be added (--mix shares them out)."


def _mix_note(conditions: Sequence[Condition], demand: Demand | None) -> list[str]:
    names = list(dict.fromkeys(condition.workload for condition in conditions))
    if demand is None or demand.shares or not 1 < len(names) == len(conditions):
        return []
    share = 100 // len(names)
    first = 100 - share * (len(names) - 1)
    shares = ",".join(f"{name}={(share if i else first) / 100:g}" for i, name in enumerate(names))
    return [f"For users who do several of these, give each workload's share of the requests, like --mix {shares}."]


def _doubts(advice: Sequence[Advice]) -> list[str]:
    conditions = [one.condition for one in advice]
    return [f"Unresolved on {label(one.condition, conditions)}: {one.doubt}." for one in advice if not one.sure]


def _notes(offers: Sequence[Offer], demand: Demand | None) -> tuple[str, ...]:
    notes = []
    if demand is not None and any(o.capacity and o.capacity.basis != "open-loop" for o in offers):
        notes.append(
            "Rates and users are estimates from closed-loop levels (docs/planning.md says how far off they were on the "
            "simulator); measure the rate itself in open loop with --measure before buying."
        )
    short = [f for o in offers for v in o.levels for f in v.findings if f.estimate.high is None]
    if short:
        need, least = max(f.estimate.needed for f in short), min(f.estimate.n for f in short)
        notes.append(
            f"Some quantiles are unresolved: {least} requests at a level cannot bound them, {need} can; sweep with a "
            "longer --window or more --repeats."
        )
    ended = [o for o in offers if o.capacity and o.capacity.limited_by == "measured levels"]
    if ended:
        tops = ", ".join(f"{o.setting} on {o.condition.workload} {o.ceiling.top:g} in flight" for o in ended)
        notes.append(f"Nothing is said beyond the measured levels ({tops}): measure higher ones to see more.")
    if any(o.setting == SCHEDULE_NAME and o.detail.endswith(STATIC) for o in offers):
        notes.append(
            "The schedule is put together from static servers; only `loadgen verify` shows what it costs by itself."
        )
    return tuple(notes)
