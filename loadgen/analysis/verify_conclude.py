"""The whole verification from the cells that were measured for it."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loadgen.analysis.checks import check_cell, contexts_of
from loadgen.analysis.goal import SloTable
from loadgen.analysis.pairs import pair_cells, sessions_of
from loadgen.analysis.ratios import MIN_N
from loadgen.analysis.schedule import Choice
from loadgen.analysis.verify import compare, overall, static_gains
from loadgen.analysis.verify_claim import other_claims
from loadgen.analysis.verify_effective import overrides, schedule_ignored
from loadgen.analysis.verify_limits import keeps, limit_checks, limits_verdict, within_limits, worst
from loadgen.analysis.verify_model import Anew, Claim, Comparison, LimitCheck, Role, Verdict, Verification
from loadgen.analysis.verify_open import OpenRun, open_samples
from loadgen.analysis.verify_samples import Sample, ratios, samples
from loadgen.analysis.verify_time import anew, seconds
from loadgen.analysis.verify_words import (
    advice_words,
    limits_seconds,
    schedule_words,
    sentence,
    with_limits,
)
from loadgen.store.model import CellResult, Manifest, ServerFacts


def verify(
    claim: Claim,
    manifest: Manifest,
    cells: Sequence[CellResult],
    servers: Sequence[ServerFacts] = (),
    open_runs: Sequence[OpenRun] = (),
    *,
    margin: float,
    margin_reason: str = "as asked",
    requested: Mapping[str, Mapping[str, Any]] | None = None,
    slo: SloTable | None = None,
    run: str = "",
) -> Verification:
    """The verdict on the claim, with what to do instead where it does not hold. `requested`: each profile's settings as
    they were started. `slo`: what these cells say of the claim's limits. `run`: see `anew`.
    """
    found = (*samples(claim, manifest, cells), *open_samples(claim, open_runs))
    levels = tuple(sorted({cell.key.level for cell in cells}))
    limits = limit_checks(claim, levels, slo)
    comparisons = within_limits(compare(found, margin), claim, limits)
    # Where every rival misses the limits, keeping them is the whole claim.
    faster = overall(comparisons) if comparisons or not found else Verdict.HOLDS
    verdict = worst(faster, limits_verdict(claim, limits)) if limits else faster
    ignored = schedule_ignored(claim, servers, cells)
    instead = _instead(claim, manifest, cells, margin, limits) if verdict is Verdict.FAILS else ""
    made = anew(manifest, cells, open_runs, margin, run)
    told = sentence(claim, faster, margin, comparisons, instead if faster is Verdict.FAILS else "", made)
    told = with_limits(told, claim, faster, limits, instead)
    if ignored and claim.choice is Choice.SCHEDULE:
        verdict = Verdict.FAILS
        told = f"{told}; but {ignored}"
    unresolved = [one for one in comparisons if one.verdict is Verdict.OPEN]
    return Verification(
        verdict=verdict,
        claim=claim,
        margin=margin,
        margin_reason=margin_reason,
        comparisons=comparisons,
        sentence=told + ".",
        instead=instead,
        schedule_note=_schedule_note(claim, manifest, cells, made),
        more_s=_more_s(claim, unresolved, limits, made) if verdict is Verdict.OPEN else None,
        overrides=(*overrides(claim, servers, requested), *((ignored,) if ignored else ())),
        notes=_notes(claim, manifest, cells, comparisons_n=min((one.n for one in comparisons), default=0)),
        indicative=manifest.quick or any(one.n < MIN_N for one in comparisons),
        seed=manifest.seed,
        created_at=manifest.created_at,
        levels=levels,
        sessions=manifest.sessions,
        static_gains=static_gains(_static_samples(claim, manifest, cells)),
        limits=limits,
        anew=made,
    )


def _more_s(claim: Claim, unresolved: Sequence[Comparison], limits: Sequence[LimitCheck], made: Anew) -> float:
    """Seconds of the verification that would resolve the comparisons, and of the limits; of all once more where nothing
    is known.
    """
    own = seconds(unresolved, made) if unresolved else None
    parts = [part for part in (own, limits_seconds(claim, limits)) if part is not None]
    return math.fsum(parts) if parts else made.sessions * made.repeat_s


def _static_samples(claim: Claim, manifest: Manifest, cells: Sequence[CellResult]) -> tuple[Sample, ...]:
    """The static K beside no speculation, whatever is claimed."""
    static = samples(replace(claim, choice=Choice.STATIC), manifest, cells)
    return tuple(sample for sample in static if sample.other is Role.NONE)


def _instead(
    claim: Claim, manifest: Manifest, cells: Sequence[CellResult], margin: float, limits: Sequence[LimitCheck]
) -> str:
    """The simplest other claim that these figures do not speak against, else the one with the smallest worst loss; of
    those that keep the limits.
    """
    end = max((last for _, last, _ in (*claim.in_flight, *claim.schedule)), default=1)
    table = ratios(claim, manifest, cells)
    static_gain = {level: v for (one, other, level), v in table.items() if (one, other) == (Role.STATIC, Role.NONE)}
    scored = [
        (min((one.mean for one in samples(other, manifest, cells)), default=-math.inf), other)
        for other in other_claims(claim, static_gain, end)
        if keeps(other, limits)
    ]
    if not scored:
        return ""
    sound = [other for worst, other in scored if worst >= -math.log1p(margin)]
    best = sound[0] if sound else max(scored, key=lambda pair: pair[0])[1]
    return f"{advice_words(best)} instead"


def _schedule_note(claim: Claim, manifest: Manifest, cells: Sequence[CellResult], made: Anew) -> str:
    """How the schedule did where it was measured and something else is claimed."""
    if claim.choice is Choice.SCHEDULE or Role.SCHEDULE not in claim.arms:
        return ""
    rival = replace(claim, choice=Choice.SCHEDULE)
    compared = compare(samples(rival, manifest, cells), made.margin)
    if not compared:
        return ""
    told = sentence(rival, overall(compared), made.margin, compared, "", made)
    return f"One server with a schedule: {told}."


def _notes(claim: Claim, manifest: Manifest, cells: Sequence[CellResult], *, comparisons_n: int) -> tuple[str, ...]:
    notes = list(_void_notes(manifest, cells))
    pairings = pair_cells(cells, claim.arms[Role.NONE]) if Role.NONE in claim.arms else ()
    starts = max((sessions_of(pairing.pairs) for pairing in pairings), default=0)
    if starts < MIN_N:
        notes.append(f"within one start of each server: {starts or 'no'} session was measured (--sessions {MIN_N})")
    if claim.choice is Choice.TWO_POOLS:
        notes.append("two pools have no edge that one server crosses, so that no open loop was run")
    elif not claim.edges:
        notes.append("there is no edge to cross, so that no open loop was run")
    if comparisons_n and comparisons_n < MIN_N:
        notes.append(f"indicative: {comparisons_n} repeats")
    if claim.choice is Choice.SCHEDULE:
        notes.append(f"schedule in requests per step: {schedule_words(claim.schedule)}")
    return tuple(notes)


def _void_notes(manifest: Manifest, cells: Sequence[CellResult]) -> Iterator[str]:
    """How many cells fell, and to which checks."""
    contexts = contexts_of(manifest, cells)
    found = [[check for check in check_cell(cell, contexts[cell.key.profile]) if check.voids] for cell in cells]
    void = sum(bool(checks) for checks in found)
    if void:
        names = Counter(check.name for checks in found for check in checks)
        told = ", ".join(f"{name} {count}" for name, count in names.most_common())
        cure = next(check.cure for checks in found for check in checks)
        yield f"{void} of {len(cells)} cells are void with their pairs ({told}); cure: {cure}"
