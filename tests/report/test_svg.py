"""The small SVG chart: well-formed, true to the figures, safe."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from loadgen.analysis.model import Findings
from loadgen.report.svg import Frame, speedup_svg, tick_step

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(text: str | None) -> ElementTree.Element:
    assert text is not None
    return ElementTree.fromstring(text)


def test_a_point_a_valid_level(findings: Findings) -> None:
    code, chat = (drawn(speedup_svg(c)) for c in findings.conditions)
    assert len(code.findall(f"{SPACE}circle")) == 6
    assert len(chat.findall(f"{SPACE}circle")) == 5  # level 32 is void
    heights = [float(c.attrib["cy"]) for c in code.findall(f"{SPACE}circle")]
    assert heights == sorted(heights)  # the speed-up falls


def test_profiles_differ_without_colour(large_findings: Findings) -> None:
    lines = drawn(speedup_svg(large_findings.conditions[0])).findall(f"{SPACE}polyline")
    assert len({line.get("stroke-dasharray") for line in lines}) == 6


def test_c102_names_are_escaped(hostile_findings: Findings, findings: Findings) -> None:
    assert speedup_svg(hostile_findings.conditions[0]) is None  # all void
    condition = findings.conditions[0]
    bad = "x</text><script>alert(1)</script>"
    text = speedup_svg(replace(condition, profiles=(replace(condition.profiles[0], profile=bad),)))
    assert drawn(text).findall(f".//{SPACE}script") == []


def test_degenerate_findings_have_no_picture_or_a_whole_one(degenerate: dict[str, Findings]) -> None:
    for found in degenerate.values():
        for condition in found.conditions:
            text = speedup_svg(condition)
            assert text is None or "nan" not in text


@pytest.mark.parametrize(("span", "step"), [(1.0, 0.2), (0.5, 0.1), (0.0, 0.01), (2.4, 0.5), (10.0, 2.0)])
def test_ticks_are_round(span: float, step: float) -> None:
    assert tick_step(span) == pytest.approx(step)


def test_the_line_at_one_is_always_inside() -> None:
    frame = Frame([1, 2], [1.4, 1.6])
    assert frame.y_low < 1 < frame.y_high
    assert frame.ticks()[0] == pytest.approx(frame.y_low)
