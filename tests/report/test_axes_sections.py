from dataclasses import replace

from loadgen.analysis.breakeven import interval
from loadgen.analysis.model import BreakEven, BreakEvenStatus, ConditionFinding, Crossing, Findings, ProfileFinding
from loadgen.report.axes_sections import axes_sections
from loadgen.report.words import MISSING, crossing_words
from loadgen.store.model import Condition


def profile(concurrency: float) -> ProfileFinding:
    crossing = Crossing(concurrency, (8.0, 15.0), 8, 16, "down")
    verdict = BreakEven(BreakEvenStatus.FOUND, (crossing,), "")
    return ProfileFinding("ngram", "ngram", (), {"output_tokens_per_s": verdict})


def findings(*conditions: tuple[int, float, float]) -> Findings:
    found = tuple(
        ConditionFinding(Condition("chat", length, temperature), (profile(turn),))
        for length, temperature, turn in conditions
    )
    return Findings("r", "process", False, False, None, None, "baseline", found, None, "")


def test_lengths_are_rows_and_temperatures_columns() -> None:
    (section,) = axes_sections(findings((500, 0.0, 12), (500, 1.0, 10), (4000, 0.0, 9)))
    assert section.header == ("input tokens", "temperature 0", "temperature 1")
    assert [row[0] for row in section.rows] == ["500", "4000"]
    assert "10" in section.rows[0][2]
    assert section.rows[1][2] == MISSING


def test_one_length_and_temperature_need_no_table() -> None:
    assert axes_sections(findings((500, 0.0, 12))) == ()


def test_a_bracket_is_called_one() -> None:
    crossing = Crossing(12.0, (8.0, 15.0), 8, 16, "down")
    assert crossing_words(crossing) == "12 (bracket 8 to 15)"
    assert crossing_words(replace(crossing, kind="curve")) == "12 (95 % CI 8 to 15)"


def test_a_bracket_stays_one_where_the_run_is_indicative_and_a_curve_loses_its_confidence() -> None:
    crossing = Crossing(12.0, (8.0, 15.0), 8, 16, "down")
    assert crossing_words(crossing, indicative=True) == "12 (bracket 8 to 15)"
    assert crossing_words(replace(crossing, kind="curve"), indicative=True) == "12 (8 to 15)"


def test_sentence_and_table_give_a_crossing_the_same_interval() -> None:
    for kind in ("bracket", "curve"):
        crossing = Crossing(12.0, (8.0, 15.0), 8, 16, "down", kind)
        assert f"12 ({interval(crossing)})" == crossing_words(crossing)
