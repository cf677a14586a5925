"""More repeats or further levels for a run that stands: `loadgen sweep --resume RUN --levels … --repeats …`."""

import math
from dataclasses import dataclass, field, replace

from loadgen.analysis.model import BreakEven, BreakEvenStatus, Findings
from loadgen.analysis.next_cells import level_limit
from loadgen.commands import options
from loadgen.commands.machine_limits import require_carried
from loadgen.commands.resume import resume_words
from loadgen.commands.sweep_setup import MOST_REPEATS, SweepRequest
from loadgen.engines.choose import EngineRequest
from loadgen.errors import UsageError
from loadgen.report.words import duration
from loadgen.store.codec import builtins, convert
from loadgen.store.folder import RunFolder
from loadgen.store.model import Manifest
from loadgen.sweep.estimate import Speed, TimeLeft
from loadgen.sweep.plan import SweepPlan, all_cells, stage_starts

EXTENSIONS = "extensions"
"""Where the manifest's settings keep what was added, one entry for each time."""
FIELDS = {
    "window": "window_s",
    "server_arg": "server_args",
    "server_env": "server_env",
    "start_timeout": "start_timeout_s",
    "engine": "name",
}
"""Options whose field has another name."""


@dataclass(frozen=True)
class Asked:
    """What stands on the command line beside `--resume`."""

    given: frozenset[str] = frozenset()
    """Names of the parameters that were given."""
    request: SweepRequest = field(default_factory=SweepRequest)
    engine: EngineRequest = field(default_factory=EngineRequest)


NOTHING = Asked()


def extend(folder: RunFolder, asked: Asked) -> None:
    """Adds the levels and repeats to the run's plan, in its manifest and as an event; nothing if it has them already.

    The named levels (all, if none is named) get so many repeats in all (the plan's, if none are named). UsageError for
    any other option that differs from the run's own.
    """
    manifest = folder.manifest()
    stored = _stored(folder, manifest)
    _refuse_others(asked, stored, convert(manifest.settings["engine"], EngineRequest))
    if not asked.given & {"levels", "repeats"}:
        return
    plan = convert(manifest.settings["plan"], SweepPlan)
    added = _added(plan, asked.request)
    if not added:
        return
    if "looks" in manifest.settings and EXTENSIONS not in manifest.settings:
        raise UsageError(
            f"{folder.run_id} chose its levels and repeats itself (--refine, with its looks planned), so that none can "
            "be added; start a new sweep with the levels that you want."
        )
    require_carried(max(added), stored.workers, "--levels")
    extension = tuple(sorted((dict(plan.extension) | added).items()))
    before: list[object] = list(manifest.settings.get(EXTENSIONS, ()))
    settings = manifest.settings | {
        "plan": builtins(replace(plan, extension=extension)),
        "request": builtins(replace(stored, extension=extension)),
        EXTENSIONS: [*before, sorted(added.items())],
        # The signs share the 5 % among all looks from here on: see `looks_note`.
        "looks": len(before) + 2,
    }
    levels = tuple(sorted({*manifest.levels, *added}))
    folder.write_manifest(replace(manifest, levels=levels, settings=settings))
    folder.append_event("extended", f"added to the plan: {_words(added)}", repeats_by_level=sorted(added.items()))


def most_repeats(manifest: Manifest) -> int:
    """Repeats of the level that has most of them."""
    added = [int(n) for one in manifest.settings.get(EXTENSIONS, ()) for _, n in one]
    return max([manifest.repeats, *added])


def looks_note(manifest: Manifest) -> tuple[str, ...]:
    """What is to be said of a run that was extended after it was looked at; empty for any other one."""
    found = manifest.settings.get(EXTENSIONS, ())
    if not found:
        return ()
    looks = len(found) + 1
    added = "; ".join(_words(dict(one)) for one in found)
    note = (
        f"the run was extended after it had been looked at ({added}): signs are now held to 5 % / {looks}, but the "
        "first look was taken at 5 % and intervals stay at a fixed 95 %, so that over all looks a wrong sign is a "
        f"little likelier than 5 % (at most {_error_rate(looks):.1%}); a fresh run of these levels has no such caveat"
    )
    return (note,)


def next_command(folder: RunFolder, findings: Findings) -> str:
    """The command that measures what would settle the open verdicts, with its time; empty if there is none."""
    manifest = folder.manifest()
    settings = manifest.settings
    refined = "looks" in settings and EXTENSIONS not in settings
    if findings.interrupted or refined or not {"request", "engine", "plan"} <= settings.keys():
        return ""
    wanted: dict[int, int] = {}
    for condition in findings.conditions:
        for profile in condition.profiles:
            found = profile.break_even.get("output_tokens_per_s")
            for level, more in _wanted(found) if found else ():
                wanted[level] = max(more, wanted.get(level, 0))
    plan = convert(settings["plan"], SweepPlan)
    if not wanted:
        return ""
    # A repeat more is one in every session.
    repeats = max(_has(plan, level) + math.ceil(more / plan.sessions) for level, more in wanted.items())
    repeats = min(max(repeats, plan.repeats), MOST_REPEATS)
    levels = {level: repeats for level in wanted if _has(plan, level) < repeats}
    if not levels:
        return ""
    base = f"--repeats {repeats} --levels {','.join(map(str, sorted(levels)))}"
    return f"{resume_words(folder, more=base)} (about {duration(_seconds(folder, plan, levels))})"


def _wanted(found: BreakEven) -> tuple[tuple[int, int], ...]:
    """(level, more repeats) for an inconclusive verdict, and a level beyond those at which it still pays."""
    if found.status is BreakEvenStatus.PAYS_THROUGHOUT and found.tested_levels:
        beyond = 2 * max(found.tested_levels)
        return ((beyond, 0),) if beyond <= level_limit(()) else ()
    return found.wanted


def _seconds(folder: RunFolder, plan: SweepPlan, added: dict[int, int]) -> float:
    longer = replace(plan, extension=tuple(sorted((dict(plan.extension) | added).items())))
    cells = folder.cells()
    there = {cell.key for cell in cells}
    missing = tuple(key for key in all_cells(longer) if key not in there)
    starts = [server.start_s for server in folder.servers()]
    time_left = TimeLeft.of(longer, Speed(0.0035, 0.0005, max(starts, default=2.0)))
    for cell in cells:
        time_left.learn(cell.key, cell.e2e_s.mean, None)
    return time_left.remaining_s(missing, len(stage_starts(missing, together=plan.order == "together")))


def _stored(folder: RunFolder, manifest: Manifest) -> SweepRequest:
    if not {"request", "engine", "plan"} <= manifest.settings.keys():
        raise UsageError(f"{folder.path} was not begun by a sweep, so that there is no plan to go on with.")
    return convert(manifest.settings["request"], SweepRequest)


def _refuse_others(asked: Asked, stored: SweepRequest, engine: EngineRequest) -> None:
    """UsageError for an option that differs from what the run was begun with."""
    for name in sorted(asked.given - {"levels", "repeats"}):
        if name == "engine" and asked.engine.name == "auto":
            continue
        place = FIELDS.get(name, name)
        sides = ((asked.request, stored), (asked.engine, engine))
        pairs = [(getattr(new, place), getattr(old, place)) for new, old in sides if hasattr(new, place)]
        if not pairs or any(a != b for a, b in pairs):
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be changed by --resume, which may only add --levels and --repeats; "
                "leave it out, or start a new sweep."
            )


def _added(plan: SweepPlan, request: SweepRequest) -> dict[int, int]:
    """Level → repeats in all, of the levels that do not have them yet."""
    if request.repeats is not None and not 1 <= request.repeats <= MOST_REPEATS:
        raise UsageError(f"--repeats is {request.repeats}; give a whole number from 1 to {MOST_REPEATS}.")
    named = options.levels(request.levels) if request.levels else tuple(sorted({*plan.levels, *dict(plan.extension)}))
    repeats = request.repeats or plan.repeats
    have = {level: _has(plan, level) for level in named}
    if request.repeats is not None and all(repeats < there for there in have.values()):
        least = min(have.values())
        raise UsageError(
            f"--repeats is the number of repeats in all, and {least} stand in the plan already; give more than {least}."
        )
    return {level: repeats for level, there in have.items() if there < repeats}


def _has(plan: SweepPlan, level: int) -> int:
    """Repeats that the plan has of a level."""
    return max(plan.repeats if level in plan.levels else 0, dict(plan.extension).get(level, 0))


def _words(added: dict[int, int]) -> str:
    by_repeats: dict[int, list[int]] = {}
    for level, repeats in sorted(added.items()):
        by_repeats.setdefault(repeats, []).append(level)
    return ", ".join(f"{n} repeats in all at {', '.join(map(str, at))}" for n, at in by_repeats.items())


def _error_rate(looks: int) -> float:
    """Union bound over looks that each spread 5 % over those so far."""
    return sum(0.05 / look for look in range(1, looks + 1))
