"""What a level table shows, for the terminal, Markdown and HTML alike: one list of columns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loadgen.analysis.model import Estimate, LevelFinding
from loadgen.report.words import (
    MISSING,
    fixed,
    half_width,
    interval,
    level_state,
    milliseconds,
    number,
    percent,
    plus_minus,
    ratio,
    ratio_of,
    ratio_with_interval,
    value_of,
)

NO_SPREAD = "below n = 3: no spread"
SPREAD_KEY = f"± and 95 % CI: 95 % intervals; n: pairs of cells; {NO_SPREAD}"
TTFT_PENALTY = 1.2
"""A median first token that is surely later than before and by more than a fifth is told beside the verdict."""
MARKS = {"ok": "ok", "warn": "!", "void": "void"}


@dataclass(frozen=True)
class Column:
    """One column of a level table."""

    header: str
    stacked: str
    """The header on two lines, for a narrow table."""
    text: Callable[[LevelFinding], str]
    rank: int
    """The higher, the sooner it is dropped where the table is too wide."""
    meaning: str


def _speedup_interval(level: LevelFinding) -> str:
    """The speed-up's interval, or why there is none."""
    if level.speedup is None:
        return MISSING
    return interval(level.speedup.ci95) or "no spread"


def spread(estimate: Estimate | None) -> str:
    """`± 0.03`, half of the 95 % interval; empty without one."""
    half = half_width(estimate)
    return "" if half is None else f"± {fixed(half, 2)}"


def counts(found: Iterable[int]) -> str:
    """How many pairs stand behind each of several figures: `3`, or `1–3` where they differ."""
    known = sorted(set(found))
    if not known:
        return "0"
    return str(known[0]) if len(known) == 1 else f"{known[0]}–{known[-1]}"


def penalties(levels: Iterable[LevelFinding]) -> tuple[str, ...]:
    """`TTFT 2.2× as long at 16 (109 ms against 49 ms)` for each level whose first tokens surely come much later."""
    return tuple(
        f"TTFT {ratio(r.ttft_ratio)} as long at {r.concurrency} "
        f"({milliseconds(r.ttft_p50_s)} ms against {milliseconds(r.baseline_ttft_p50_s)} ms)"
        for r in levels
        if r.valid and r.ttft_ratio and r.ttft_ratio.ci95 and r.ttft_ratio.ci95[0] > 1
        if r.ttft_ratio.value > TTFT_PENALTY
    )


def _checks(level: LevelFinding) -> str:
    """The state and the names of the checks that spoke."""
    names = ", ".join(dict.fromkeys(check.name for check in level.checks))
    mark = MARKS[level_state(level)]
    return f"{mark} {names}" if names else mark


COLUMNS = (
    Column("conc", "\nconc", lambda r: str(r.concurrency), 0, "requests in flight"),
    Column(
        "base tok/s",
        "baseline\ntok/s",
        lambda r: plus_minus(r.baseline_tokens_per_s),
        4,
        "baseline, output tokens per second",
    ),
    Column("tok/s", "\ntok/s", lambda r: plus_minus(r.tokens_per_s), 3, "output tokens per second"),
    Column("speed-up", "speed\nup", lambda r: ratio(r.speedup), 0, "output tokens per second, profile / baseline"),
    Column("95 % CI", "\n95 % CI", _speedup_interval, 1, "interval of the speed-up"),
    Column("n", "\nn", lambda r: str(r.n), 0, "valid pairs"),
    Column("TPOT ms", "TPOT\nms", lambda r: milliseconds(r.tpot_p50_s), 6, "median time per output token"),
    Column("TTFT ms", "TTFT\nms", lambda r: milliseconds(r.ttft_p50_s), 8, "median time to first token"),
    Column("accept", "acc-\nept", lambda r: percent(r.acceptance_rate), 5, "accepted / drafted tokens"),
    Column(
        "length",
        "mean\nlen",
        lambda r: fixed(r.mean_acceptance_length, 2),
        9,
        "mean acceptance length: tokens per drafted step, bonus token included",
    ),
    Column(
        "tok/step",
        "tok/\nstep",
        lambda r: fixed(r.tokens_per_step, 2),
        7,
        "tokens per decode step of a request, undrafted steps included",
    ),
)
CHECKS = Column("checks", "\nchecks", _checks, 2, "trust checks: ok, ! a warning, void no verdict")
CHECK_MARK = Column("checks", "\nchecks", lambda r: MARKS[level_state(r)], 2, CHECKS.meaning)
STEP_TIME = Column(
    "step time", "step\ntime", lambda r: ratio_of(r.step_time_ratio), 12, "engine step time, profile / baseline"
)
# What the charts show beside the main columns, for the second table of a page.
MORE_COLUMNS = (
    COLUMNS[0],
    Column("batch", "\nbatch", lambda r: number(r.batch), 11, "requests decoded per engine step"),
    Column("base batch", "base\nbatch", lambda r: number(r.baseline_batch), 11, "the same for the baseline"),
    Column(
        "TPOT gain", "TPOT\ngain", lambda r: ratio_with_interval(r.tpot_speedup), 12, "mean TPOT, baseline / profile"
    ),
    Column(
        "base TPOT ms",
        "base\nTPOT ms",
        lambda r: milliseconds(r.baseline_tpot_p50_s),
        12,
        "baseline, median time per output token",
    ),
    Column(
        "TTFT ratio",
        "TTFT\nratio",
        lambda r: ratio_with_interval(r.ttft_ratio),
        12,
        "median TTFT, profile / baseline: above 1 is a penalty",
    ),
    Column(
        "base TTFT ms",
        "base\nTTFT ms",
        lambda r: milliseconds(r.baseline_ttft_p50_s),
        12,
        "baseline, median time to first token",
    ),
    Column("E2E s", "E2E\ns", lambda r: number(r.e2e_p50_s), 12, "median time to the last token"),
    Column("drafted", "\ndrafted", lambda r: percent(r.draft_coverage), 12, "share of decode steps that had a draft"),
    Column(
        "by position",
        "by\nposition",
        lambda r: ", ".join(percent(share) for share in r.acceptance_per_position) or MISSING,
        12,
        "share of drafts whose token at position 1, 2, … was accepted",
    ),
    Column("drafts", "\ndrafts", lambda r: fixed(r.drafts, 0), 12, "drafts behind the acceptance figures"),
    Column(
        "regime", "\nregime", lambda r: r.explanation.regime if r.explanation else MISSING, 12, "what limits the server"
    ),
    Column(
        "needed tok/step",
        "needed\ntok/step",
        lambda r: fixed(r.explanation.break_even_tokens_per_step if r.explanation else None, 2),
        12,
        "tokens per step at which this level would break even",
    ),
    Column(
        "void cells",
        "void\ncells",
        lambda r: f"{r.voided_cells} + {r.voided_baseline_cells}",
        12,
        "cells kept out of the verdict: the profile's own + the baseline's",
    ),
)


def pays(level: LevelFinding) -> bool | None:
    """True if the whole interval lies above 1, False if below, None if undecided or without a verdict."""
    value = value_of(level.speedup)
    if not level.valid or level.speedup is None or value is None or level.speedup.ci95 is None:
        return None
    low, high = level.speedup.ci95
    if low > 1:
        return True
    return False if high < 1 else None
