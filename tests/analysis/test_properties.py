import json
import math
from dataclasses import asdict, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.analysis.findings import analyse
from loadgen.analysis.model import Findings
from loadgen.load.summary import Distribution
from loadgen.store.model import CellResult

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
RATIOS = st.dictionaries(st.sampled_from([1, 2, 4, 8, 16, 32]), st.floats(0.2, 5.0), min_size=1)
NOISE = st.lists(st.floats(0.7, 1.4), min_size=1, max_size=4)


def speedups(findings: Findings) -> list[float | None]:
    (profile,) = findings.conditions[0].profiles
    return [level.speedup.value if level.speedup else None for level in profile.levels]


def statuses(findings: Findings) -> list[str]:
    return [verdict.status for verdict in findings.conditions[0].profiles[0].break_even.values()]


@FEW
@given(ratios=RATIOS, noise=NOISE, shuffled=st.randoms(use_true_random=False))
def test_the_order_of_cells_changes_nothing(
    run_of: Any, manifest: Any, ratios: dict[int, float], noise: list[float], shuffled: Any
) -> None:
    cells = run_of(ratios, noise=noise)
    mixed = list(cells)
    shuffled.shuffle(mixed)
    assert analyse(manifest(), mixed) == analyse(manifest(), cells)


@FEW
@given(ratios=RATIOS, noise=NOISE, factor=st.floats(0.1, 10.0))
def test_a_machine_that_is_faster_for_both_changes_no_speed_up(
    run_of: Any, manifest: Any, ratios: dict[int, float], noise: list[float], factor: float
) -> None:
    cells = run_of(ratios, noise=noise)
    before, after = analyse(manifest(), cells), analyse(manifest(), [scaled(cell, factor) for cell in cells])
    for old, new in zip(speedups(before), speedups(after), strict=True):
        assert old is not None
        assert new is not None
        assert math.isclose(old, new, rel_tol=1e-9)


def scaled(cell: CellResult, factor: float) -> CellResult:
    tpot = cell.tpot_s.mean
    assert tpot is not None
    return replace(
        cell,
        output_tokens_per_s=cell.output_tokens_per_s * factor,
        tpot_s=Distribution(40, tpot / factor, tpot / factor),
        window=None,
        idle=None,
    )


@FEW
@given(ratios=RATIOS, noise=NOISE)
def test_swapping_the_profiles_inverts_the_speed_up(
    run_of: Any, manifest: Any, ratios: dict[int, float], noise: list[float]
) -> None:
    cells = [replace(cell, window=None, idle=None) for cell in run_of(ratios, noise=noise)]
    there = analyse(manifest(), cells)
    back = analyse(manifest(against="ngram"), cells)
    for old, new in zip(speedups(there), speedups(back), strict=True):
        assert old is not None
        assert new is not None
        assert math.isclose(old * new, 1.0, rel_tol=1e-9)
    assert [status == "found" for status in statuses(there)] == [status == "found" for status in statuses(back)]


MAYBE = st.one_of(st.none(), st.sampled_from([0.0, 1e-12, 1.0, 1e12]))


@FEW
@given(ratios=RATIOS, noise=NOISE, data=st.data())
def test_whatever_is_missing_the_findings_are_finite_json(
    run_of: Any, manifest: Any, ratios: dict[int, float], noise: list[float], data: st.DataObject
) -> None:
    cells = [broken(cell, data) for cell in run_of(ratios, noise=noise)]
    json.dumps(asdict(analyse(manifest(), cells)), allow_nan=False)


def broken(cell: CellResult, data: st.DataObject) -> CellResult:
    fault = data.draw(st.sampled_from(["none", "empty", "no-window", "zero-rate", "odd-counters"]))
    empty = Distribution(0)
    if fault == "empty":
        return replace(cell, tpot_s=empty, ttft_s=empty, e2e_s=empty, output_tokens=empty, prompt_tokens=empty)
    if fault == "no-window":
        return replace(cell, window=None, idle=None)
    if fault == "zero-rate":
        return replace(cell, output_tokens_per_s=0.0, window_s=0.0)
    if fault == "odd-counters":
        assert cell.window is not None
        window = replace(
            cell.window,
            generation_tokens=data.draw(MAYBE),
            drafts=data.draw(MAYBE),
            draft_tokens=data.draw(MAYBE),
            accepted_tokens=data.draw(MAYBE),
        )
        return replace(cell, window=window, idle=None)
    return cell
