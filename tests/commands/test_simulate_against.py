"""The table of docs/results.md that holds the preset against the measured curve is what follows from the cells."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.analysis.model import Estimate
from loadgen.commands.simulate_against import CurveLevel, curve, table
from loadgen.commands.simulate_fit import run_configs
from loadgen.errors import UsageError
from loadgen.simulator.config import capture_sizes
from loadgen.simulator.curve import Lengths, tokens_per_s
from loadgen.simulator.hardware import PRESETS
from loadgen.store.folder import RunFolder
from loadgen.workloads.lengths import parse_lengths

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


def speedups(folder: Path, profile: str, against: str, levels: Sequence[int], limit: int = 512) -> list[float]:
    """Of the shipped machine, in a closed loop of the run's lengths; graphs up to so many tokens."""
    configs = {
        name: replace(config, capture_sizes=capture_sizes(limit))
        for name, config in run_configs(RunFolder(folder)).items()
    }
    lengths = Lengths(473, parse_lengths("uniform:64-192"))
    own, base = (tokens_per_s(PRESETS["h200-dense8b"], configs[name], lengths, levels) for name in (profile, against))
    return [round(own[level] / base[level], 2) for level in levels]


def test_a_higher_graph_limit_is_foretold_as_the_page_says() -> None:
    assert speedups(EXAMPLE, "layer-draft-k3", "baseline", (16, 32)) == [0.93, 0.87]
    assert speedups(EXAMPLE, "layer-draft-k3", "baseline", (16, 32), limit=1024) == [1.24, 1.07]


def test_the_verification_that_no_fit_saw_is_met_as_the_page_says() -> None:
    levels, verify = (13, 15, 32), EXAMPLE / "verify"
    assert speedups(verify, "layer-draft-k3", "baseline", levels) == [1.27, 1.05, 0.87]
    assert speedups(verify, "layer-draft-k3", "layer-draft-schedule", levels) == [1.39, 2.42, 1.75]
