"""The table of docs/results.md that holds the preset against the measured curve is what follows from the cells."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadgen.analysis.model import Estimate
from loadgen.commands.simulate_against import CurveLevel, curve, table
from loadgen.errors import UsageError
from loadgen.simulator.hardware import PRESETS
from loadgen.store.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "h200" / "dense8b"
BLOCK = re.compile(r"<!-- simulator: examples/h200/dense8b -->\n(.*?)<!-- end -->", re.DOTALL)


@pytest.fixture(scope="module")
def found() -> tuple[CurveLevel, ...]:
    return curve(RunFolder(EXAMPLE), PRESETS["h200-dense8b"])


def test_the_page_shows_the_presets_distance_as_it_is_computed(found: Sequence[CurveLevel]) -> None:
    block = BLOCK.search((ROOT / "docs" / "results.md").read_text(encoding="utf-8"))
    assert block is not None
    assert block[1] == table(found)


def test_the_preset_is_near_the_curve_but_at_64(found: Sequence[CurveLevel]) -> None:
    """What the page says in words."""
    assert {(one.profile, one.level) for one in found if abs(one.error) > 0.06} == {
        ("layer-draft-k1", 64),
        ("layer-draft-k3", 64),
    }
    assert [(one.profile, one.level) for one in found if one.inside is False] == [("layer-draft-k1", 64)]


def test_a_level_with_one_pair_has_no_interval_to_lie_in() -> None:
    alone = CurveLevel("k3", 8, 1, Estimate(1.2, 1), 1.26)
    assert alone.inside is None
    assert table([alone]).splitlines()[-1] == "| 8 | k3 | 1.20× (n = 1) | 1.26× | +5% | no interval |"


def test_a_run_whose_texts_decide_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("manifest.json", "cells.jsonl", "servers.jsonl"):
        text = (EXAMPLE / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace('"output_lengths":"uniform:64-192"', '"output_lengths":null'), "utf-8")
    (folder / "profiles").mkdir()
    for file in (EXAMPLE / "profiles").iterdir():
        (folder / "profiles" / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UsageError, match="only its step times"):
        curve(RunFolder(folder), PRESETS["h200-dense8b"])
