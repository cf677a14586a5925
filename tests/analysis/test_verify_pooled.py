"""An answer is held to what was measured again: never the opposite of it, and always how long the rest would take."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis.goal import about
from loadgen.analysis.model import BreakEven, BreakEvenStatus, Crossing
from loadgen.analysis.schedule import Choice
from loadgen.analysis.schedule_answer import best_k, ranges_words
from loadgen.analysis.schedule_edges import Rung
from loadgen.analysis.schedule_ladder import ladder_findings
from loadgen.analysis.verify import MOST_REPEATS, compare
from loadgen.analysis.verify_model import Anew, Claim, Role, StaticGain, Verdict, Verification
from loadgen.analysis.verify_pooled import Pooled, corrected, k_at, pooled, refuted
from loadgen.analysis.verify_samples import Sample
from loadgen.analysis.verify_time import round_s, settles_briefly, what_settles
from loadgen.analysis.verify_words import final_words, sentence
from loadgen.commands.conclude import find_findings
from loadgen.profiles.model import BatchSchedule
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition

RANGES: BatchSchedule = ((1, 14, 3), (15, 256, 0))
TESTED = (1, 8, 16, 32)
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"


def gain(level: int, ratio: float, error: float | None = 0.01, n: int = 3) -> StaticGain:
    return StaticGain(level, math.log(ratio), error, n)


def seen(**ratios: float) -> dict[int, Pooled]:
    return pooled([gain(int(name.removeprefix("at")), ratio) for name, ratio in ratios.items()], ())


def test_two_measurements_of_one_load_count_by_their_precision() -> None:
    run = [Rung(16, math.log(0.97), 0.04, None, 3), Rung(8, math.log(1.3), 0.01, None, 3)]
    found = pooled([gain(16, 1.13, 0.02), gain(15, 1.2, 0.02)], run)
    weighted = (math.log(1.13) * 0.02**-2 + math.log(0.97) * 0.04**-2) / (0.02**-2 + 0.04**-2)
    assert found[16].log_speedup == pytest.approx(weighted)
    assert {level: one.sign for level, one in found.items()} == {16: 1, 15: 1}
    assert found[15].words == "1.20x at 15"


def test_opposite_measurements_cancel_and_one_repeat_needs_more() -> None:
    found = pooled([gain(16, 1.1, 0.02), gain(4, 1.04, None, 1), gain(2, 1.06, None, 1)], [Rung(16, -0.1, 0.02, None)])
    assert {level: one.sign for level, one in found.items()} == {16: 0, 4: 0, 2: 1}


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ({"at13": 1.3, "at15": 1.13}, ((1, 15, 3), (16, 256, 0))),
        ({"at13": 1.3, "at15": 0.99}, RANGES),
        ({"at13": 0.9, "at15": 0.9}, ((1, 12, 3), (13, 256, 0))),
        ({"at32": 1.2}, ((1, 14, 3), (15, 31, 0), (32, 256, 3))),
        ({"at1": 0.8}, ((1, 1, 0), (2, 14, 3), (15, 256, 0))),
    ],
)
def test_a_refuted_load_moves_to_the_other_side(again: dict[str, float], expected: BatchSchedule) -> None:
    made, moved = corrected(RANGES, TESTED, 3, seen(**again))
    assert made == expected
    assert bool(moved) == (expected != RANGES)
    for one in seen(**again).values():
        assert one.sign == 0 or (k_at(made, one.concurrency) > 0) == (one.sign > 0)


def test_another_k_than_the_static_one_is_not_judged_by_it() -> None:
    ranges: BatchSchedule = ((1, 6, 4), (7, 12, 2), (13, 256, 0))
    assert corrected(ranges, (1, 8, 16), 4, seen(at8=0.9))[0] == ranges
    assert corrected(ranges, (1, 8, 16), 4, seen(at13=1.1))[0] == ((1, 6, 4), (7, 12, 2), (13, 13, 4), (14, 256, 0))


def crossing(low: float, high: float, direction: str = "down") -> Crossing:
    return Crossing((low + high) / 2, (low, high), 8, 16, direction)


def even(status: BreakEvenStatus, *crossings: Crossing) -> BreakEven:
    return BreakEven(status, crossings, "")


@pytest.mark.parametrize(
    ("made", "level", "ratio", "expected"),
    [
        (even(BreakEvenStatus.FOUND, crossing(10, 15)), 17, 1.1, True),
        (even(BreakEvenStatus.FOUND, crossing(10, 15)), 13, 1.1, False),
        (even(BreakEvenStatus.FOUND, crossing(10, 15)), 9, 0.9, True),
        (even(BreakEvenStatus.FOUND, crossing(10, 15, "up")), 9, 0.9, False),
        (even(BreakEvenStatus.FOUND, crossing(4, 5), crossing(10, 15, "up")), 20, 0.9, True),
        (even(BreakEvenStatus.PAYS_THROUGHOUT), 32, 0.9, True),
        (even(BreakEvenStatus.NEVER_PAYS), 1, 1.1, True),
        (even(BreakEvenStatus.INCONCLUSIVE), 1, 1.1, False),
    ],
)
def test_a_break_even_is_refuted_only_outside_its_interval(
    made: BreakEven, level: int, ratio: float, expected: bool
) -> None:
    assert bool(refuted(made, pooled([gain(level, ratio)], ()))) is expected


def test_a_tie_is_no_advice_against_speculation() -> None:
    ranges: BatchSchedule = ((1, 14, 3), (15, 256, 0))
    assert ranges_words(ranges, ()) == "K = 3 up to 14 concurrent requests, no sure gain from 15 on"
    assert ranges_words(((1, 1, 3), (2, 9, 0)), ()) == "K = 3 up to 1 concurrent request, no sure gain from 2 on"
    assert ranges_words(ranges, (32,)) == "K = 3 up to 14 concurrent requests, no speculation from 15 on"


def test_the_example_says_what_it_measured_again() -> None:
    """The sentence said "up to 14" while 15, measured again, gains for sure."""
    findings = find_findings(RunFolder(EXAMPLE))
    assert "best with K = 3 up to 15 concurrent requests, no sure gain from 16 on" in findings.answer
    assert "measured again: 1.13x at 15" in findings.answer
    verification = findings.verification
    assert verification is not None
    (ladder,) = findings.ladders
    again = pooled(verification.static_gains, ())
    words = best_k(ladder, again)
    last = re.search(r"K = 3 up to (\d+)", words)
    assert last is not None
    for level, one in again.items():
        assert one.sign == 0 or (level <= int(last[1])) == (one.sign > 0)
    assert ladder_findings(findings.conditions, {}, max_num_seqs=256) == ()


def sample(values: tuple[float, ...], seconds: float = 5.0, **changes: Any) -> Sample:
    return Sample("32", 32, Role.STATIC, Role.NONE, values, seconds, **changes)


def test_what_is_open_always_says_how_long_it_would_take() -> None:
    noisy = compare([sample((0.1, -0.25, -0.05))], 0.1)
    assert noisy[0].more_repeats is not None
    assert 27 < noisy[0].more_repeats < MOST_REPEATS
    assert noisy[0].more_s == 5.0 * noisy[0].more_repeats
    bound = math.log1p(0.02)
    (never,) = compare([sample((-bound + 0.01, -bound - 0.01, -bound))], 0.02)
    assert never.more_repeats == MOST_REPEATS
    (single,) = compare([sample((0.2,))], 0.02)
    assert single.more_repeats == 2


def test_advice_that_was_measured_to_cost_is_not_given_without_it() -> None:
    claim = Claim(Choice.STATIC, "ngram", Condition("code-edit", 512, 0.0), 4, (), ((1, 256, 4),), (), {})
    made = Verification(
        Verdict.OPEN, claim, 0.1, "as asked", compare([sample((0.05, -0.25, -0.05))], 0.1), "", anew=Anew(repeat_s=9.0)
    )
    assert final_words(made, seen(at8=1.2)).startswith("use static K = 4 (re-measured: not resolved, ")
    costly = final_words(made, seen(at8=1.2, at14=0.95, at16=0.93))
    assert costly.startswith(
        "static K = 4 at every tested load, the run's advice, is not resolved (a cost at 14, 16 (0.93x at 16) when "
        "re-measured, "
    )
    held = final_words(replace(made, verdict=Verdict.HOLDS), seen(at16=0.95))
    assert held == "use static K = 4 (re-measured: holds at 1 load within 10.0 %, which covers a cost, 0.95x at 16)"
    off = replace(made, claim=replace(claim, choice=Choice.NONE))
    assert "a gain of speculation, 1.20x at 8" in final_words(off, seen(at8=1.2))


def test_near_the_margin_and_far_from_it_are_told_apart() -> None:
    near, far = sample((-0.08, -0.02, -0.045)), Sample("8", 8, Role.STATIC, Role.NONE, (0.05, -0.05, 0.01), 5.0)
    opened = Sample("open loop across 9", 9, Role.STATIC, Role.NONE, (0.2, -0.2, 0.1, -0.1), 2.0, closed=False)
    claim = Claim(Choice.STATIC, "ngram", Condition("code-edit", 512, 0.0), 4, (), ((1, 256, 4),), (), {})
    found = compare([near, far, opened], 0.05)
    made = Anew("a-run", 0.05, 3, 20.0, 24.0, 12.0)
    words = sentence(claim, Verdict.OPEN, 0.05, found, "", made)
    assert "at 32 it lies near the margin of 5.0 %: " in words
    told = re.search(
        r"(\d+) repeats a session and an open loop (\d+) times as long would settle it at 8, open loop across 9 "
        r"\(about (\d+ \w+), every load and server anew: make verify RUN=a-run REPEATS=(\d+) "
        r"ARGS='--margin 0.05 --sessions 3 --open-loop (\d+)'\)",
        words,
    )
    assert told is not None, words
    count, times, time, repeats, loop_s = told.groups()
    assert (repeats, int(loop_s)) == (count, 12 * int(times))
    assert time == about(3 * (int(count) * 20.0 + int(times) * 24.0))
    assert sentence(claim, Verdict.OPEN, 0.05, found[1:2], "", made).count(" at 8") == 1


def test_no_words_advise_another_margin() -> None:
    """A margin is fixed before anything is measured (docs/method.md, part 9)."""
    claim = Claim(Choice.STATIC, "ngram", Condition("code-edit", 512, 0.0), 4, (), ((1, 256, 4),), (), {})
    for values in ((-0.08, -0.02, -0.045), (0.1, -0.25, -0.05), (0.05, -0.05, 0.01)):
        told = sentence(claim, Verdict.OPEN, 0.05, compare([sample(values)], 0.05), "", Anew(margin=0.05, repeat_s=9.0))
        assert set(re.findall(r"--margin (\S+)'", told)) <= {"0.05"}, told


def test_the_time_said_is_that_of_the_command_said() -> None:
    """17 repeats of 3 servers at 4 loads were called 45 s, the windows of one load; the command took 9 min 15 s."""
    (one,) = compare([sample((0.02, -0.02))], 0.05)
    made = Anew("runs elsewhere/x", 0.05, 1, 32.6, quick=True)
    open_one = replace(one, n=2, more_repeats=15)
    assert settles_briefly([open_one], made) == ", about 9 min of measuring would settle it"
    assert what_settles([open_one], made) == (
        ": 17 repeats would settle it (about 9 min, every load and server anew: loadgen verify 'runs elsewhere/x' "
        "--repeats 17 --margin 0.05)"
    )


def test_a_round_is_every_load_and_server_with_what_lies_between_windows(cell: Any) -> None:
    """12 cells, 3 s from start to start, of which 2 s are the window; a pause of an hour is none of it."""
    cells = []
    for order in range(12):
        profile, level = ("baseline", "ngram")[order % 2], (1, 8, 32)[order // 2 % 3]
        minute = 60 if order > 8 else 0
        started = f"2026-11-29T{20 + minute // 60:02d}:00:{3 * order:02d}.000Z"
        made = cell(profile, level, order // 6)
        cells.append(replace(made, order=order, started_at=started, window_s=2.0))
    assert round_s(cells) == 6 * 3.0
    assert round_s(cells[::-1]) == round_s(cells)


def test_an_open_loop_is_repeated_as_a_whole() -> None:
    blocks = (0.2, -0.2, 0.1, -0.1, 0.05, -0.05)
    (closed,), (opened,) = compare([sample(blocks)], 0.02), compare([sample(blocks, closed=False)], 0.02)
    assert closed.more_repeats is not None
    assert opened.more_repeats == math.ceil(closed.more_repeats / 6)
    assert opened.more_s == closed.more_s


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (90, "90 s"), (600, "10 min"), (9000, "2.5 h")])
def test_a_time_is_as_exact_as_an_estimate(seconds: float, words: str) -> None:
    assert about(seconds) == words
