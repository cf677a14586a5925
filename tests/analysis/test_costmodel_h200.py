"""The step cost on the run from an H200: each level foretold from the others."""

import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from loadgen.analysis.acceptance import pool, step_time_s
from loadgen.analysis.costmodel import fit_cost
from loadgen.analysis.stepcost import StepPoint
from loadgen.analysis.steps import step_groups
from loadgen.commands.simulate_fit import fit_cells
from loadgen.metrics.model import CounterDelta
from loadgen.store.folder import RunFolder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"
Points = dict[tuple[str, int], StepPoint]


@pytest.fixture(scope="module")
def points() -> Points:
    windows: dict[tuple[str, int], list[CounterDelta]] = defaultdict(list)
    for cell in fit_cells(RunFolder(EXAMPLE)):
        if cell.window is not None:
            windows[(cell.key.profile, cell.key.level)].append(cell.window)
    return {place: point(*place, found) for place, found in windows.items()}


def point(profile: str, level: int, windows: list[CounterDelta]) -> StepPoint:
    delta = pool(windows)
    seconds = step_time_s(delta)
    assert delta is not None
    assert seconds
    assert delta.decode_batch
    assert delta.request_steps
    drafted = (delta.draft_tokens or 0.0) / delta.request_steps
    return StepPoint(delta.decode_batch, drafted, seconds, profile != "baseline", step_groups(windows, level))


@pytest.mark.parametrize(
    ("profile", "median", "largest"), [("layer-draft-k1", 0.030, 0.064), ("layer-draft-k3", 0.025, 0.066)]
)
def test_levels_are_foretold_from_the_others(points: Points, profile: str, median: float, largest: float) -> None:
    """docs/method.md, part 6."""
    errors = {}
    for level in sorted({level for name, level in points if name == profile}):
        others = [one for (name, at), one in points.items() if at != level and name in {"baseline", profile}]
        model = fit_cost(others)
        assert model is not None
        plain, own = points[("baseline", level)], points[(profile, level)]
        measured = plain.step_time_s / own.step_time_s
        errors[level] = abs(1 / model.break_even_length(plain, own) / measured - 1)
    below = [error for level, error in errors.items() if level <= 128]
    assert statistics.median(below) == pytest.approx(median, abs=0.002)
    assert max(below) == pytest.approx(largest, abs=0.003)
    assert errors[256] < 0.10
