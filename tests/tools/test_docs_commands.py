"""The commands in the docs run as written after `make setup`, which puts nothing on the PATH."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_block_needs_loadgen_on_the_path(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.match(r"(    |\$ )?loadgen [a-z]+ (-|[A-Za-z0-9./]+( |$))", line)] == []


@pytest.mark.parametrize("name", ["planning", "service", "dashboards", "method"])
def test_a_page_says_what_the_short_name_stands_for(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert "`loadgen` in a sentence stands for `.venv/bin/loadgen`" in text[:1500]
