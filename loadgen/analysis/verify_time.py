"""What measuring an advice again costs: a verification starts anew, with every load and every server."""

import itertools
import math
import shlex
import statistics
from collections.abc import Sequence
from datetime import datetime

from loadgen.analysis.goal import about
from loadgen.analysis.verify import MOST_REPEATS
from loadgen.analysis.verify_model import Anew, Comparison
from loadgen.analysis.verify_open import OpenRun
from loadgen.store.model import CellResult, Manifest

MAX_REPEATS = 30
"""What takes more repeats than this lies at the margin itself: more of the same is no advice there."""


def anew(
    manifest: Manifest, cells: Sequence[CellResult], open_runs: Sequence[OpenRun], margin: float, run: str = ""
) -> Anew:
    """What one more verification takes. `run`: the run as `loadgen verify` takes it; "": by its name."""
    return Anew(
        run=run or manifest.run_id.split("/", maxsplit=1)[0],
        margin=margin,
        sessions=manifest.sessions,
        repeat_s=round_s(cells),
        open_s=math.fsum(one.length_s for one in open_runs) / max(len({one.session for one in open_runs}), 1),
        open_length_s=max((one.length_s for one in open_runs), default=0.0),
        quick=manifest.quick,
    )


def round_s(cells: Sequence[CellResult]) -> float:
    """Seconds of one repeat of every load and server: windows, and what lies between two of them (prompts, warm-up,
    settling, drain) as its median; pauses and server starts are left out, and so is a wall clock that was set.
    """
    ordered = sorted(cells, key=lambda cell: (cell.key.session, cell.order))
    between = [
        (datetime.fromisoformat(after.started_at) - datetime.fromisoformat(before.started_at)).total_seconds()
        - before.window_s
        for before, after in itertools.pairwise(ordered)
        if before.key.session == after.key.session and before.started_at and after.started_at
    ]
    beside = max(statistics.median(between), 0.0) if between else 0.0
    by_place: dict[tuple[str, int], list[float]] = {}
    for cell in cells:
        by_place.setdefault((cell.key.profile, cell.key.level), []).append(cell.window_s + beside)
    return math.fsum(math.fsum(found) / len(found) for found in by_place.values())


def what_settles(open_at: Sequence[Comparison], made: Anew) -> str:
    """`: 17 repeats would settle it (about 9 min 15 s, all loads and servers anew: make verify …)`: how long it takes,
    whatever it is, and the one command that does it, at the same margin, for that is fixed before anything is measured.
    What more repeats do not settle is told apart. Nothing is said where the time is not known (by an older version).
    """
    if not made.repeat_s:
        return ""
    near, rest = _near_and_rest(open_at)
    parts = []
    if rest:
        parts.append(
            f"{_count(rest, made)} would settle it{f' at {_places(rest)}' if near else ''} (about "
            f"{about(seconds(rest, made))}, every load and server anew: {command(rest, made)})"
        )
    if near:
        parts.append(
            f"at {_places(near)} it lies near the margin of {100 * made.margin:.1f} %: {_long(near, made)}; longer "
            "windows (--window) need fewer"
        )
    return f": {'; '.join(parts)}" if parts else ""


def settles_briefly(open_at: Sequence[Comparison], made: Anew) -> str:
    """The same for a sentence that must stay short: `, about 9 min would settle it`; the command is told elsewhere."""
    near, rest = _near_and_rest(open_at)
    if not made.repeat_s or not (near or rest):
        return ""
    if not rest:
        return f", near the margin of {100 * made.margin:.1f} %: {_long(near, made)}"
    where = f" at {_places(rest)}" if near else ""
    return f", about {about(seconds(rest, made))} of measuring would settle it{where}"


def _near_and_rest(open_at: Sequence[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """What lies so near the margin that repeats do not settle it, and what they do settle."""
    known = [one for one in open_at if one.more_repeats]
    near = [one for one in known if one.n + (one.more_repeats or 0) > MAX_REPEATS and _at_a_level(one)]
    return near, [one for one in known if one not in near]


def seconds(open_at: Sequence[Comparison], made: Anew) -> float:
    """Of the command that settles these, server starts left out."""
    if not open_at:
        return 0.0
    per_session = repeats(open_at, made)
    return made.sessions * (per_session * made.repeat_s + longer(open_at) * made.open_s)


def repeats(open_at: Sequence[Comparison], made: Anew) -> int:
    """Repeats per session, in all, that the loads among these need; as many as there are where none does."""
    wanted = max((one.n + (one.more_repeats or 0) for one in open_at if _at_a_level(one)), default=0)
    return max(math.ceil(wanted / max(made.sessions, 1)), 2 if made.quick else 1)


def longer(open_at: Sequence[Comparison]) -> int:
    """How many times as long the open loops must last."""
    return 1 + max((one.more_repeats or 0 for one in open_at if not _at_a_level(one)), default=0)


def command(open_at: Sequence[Comparison], made: Anew) -> str:
    """The command, as it can be typed."""
    options = [f"--margin {made.margin:.4g}"]
    if made.sessions > 1:
        options.append(f"--sessions {made.sessions}")
    if made.open_length_s and (times := longer(open_at)) > 1:
        options.append(f"--open-loop {math.ceil(times * made.open_length_s)}")
    count = repeats(open_at, made)
    if "/" in made.run:
        return f"loadgen verify {shlex.quote(made.run)} --repeats {count} {' '.join(options)}"
    return f"make verify RUN={made.run} REPEATS={count} ARGS='{' '.join(options)}'"


def _count(open_at: Sequence[Comparison], made: Anew) -> str:
    times = longer(open_at)
    parts = []
    if any(_at_a_level(one) for one in open_at):
        count = repeats(open_at, made)
        parts.append(f"{count} repeat{'s' if count > 1 else ''}{' a session' if made.sessions > 1 else ''}")
    if times > 1:
        parts.append(f"an open loop {times} times as long")
    return " and ".join(parts)


def _long(near: Sequence[Comparison], made: Anew) -> str:
    if any((one.more_repeats or 0) >= MOST_REPEATS for one in near):
        return f"more than {MOST_REPEATS:,} repeats would tell (more than {about(MOST_REPEATS * made.repeat_s)})"
    total = max(one.n + (one.more_repeats or 0) for one in near)
    return f"{total:,} repeats in all would tell (about {about(seconds(near, made))})"


def _at_a_level(one: Comparison) -> bool:
    return one.place == str(one.concurrency)


def _places(found: Sequence[Comparison]) -> str:
    return ", ".join(dict.fromkeys(one.place for one in found))
