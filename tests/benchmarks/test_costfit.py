"""What the page says of generators that the fit's form was not made for is what the bench computes."""

from pathlib import Path

import pytest

from benchmarks.answer.costfit import UNSEEN_FORMS, power_law, written

PAGE = Path(__file__).resolve().parents[2] / "docs" / "method.md"
FORMS = (
    ("a power law with a staircase", power_law),
    *((f"{n} (never used while building)", f) for n, f in UNSEEN_FORMS),
)


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_the_page_shows_how_far_each_written_generator_is_off(number: int) -> None:
    name, form = FORMS[number]
    found = written(name, form, 3.2, 2.2, (3, 6, 12, 24))
    row = f"| {name} | 3, 6, 12, 24 | {found.median:.1%} | {found.worst:.1%} |"
    assert row in PAGE.read_text(encoding="utf-8")
