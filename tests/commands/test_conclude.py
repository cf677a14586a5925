"""What a run's answer says beside its cells: what failed, and what could not be read."""

from dataclasses import replace
from pathlib import Path

from loadgen.commands.conclude import failed_cells, failed_keys, find_findings
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import distribution
from loadgen.metrics.model import GaugeSummary
from loadgen.store.folder import RunFolder, StoredEvent
from loadgen.store.model import CellKey, CellResult, Condition, Manifest

KEYS = [CellKey("ngram", Condition("chat", 60, 0.0), level, 0) for level in (1, 2, 4, 8)]

MANIFEST = Manifest(
    run_id="r",
    created_at="2026-11-29T16:20:00.000Z",
    loadgen_version="0",
    argv=("sweep",),
    engine="simulator",
    engine_reason="",
    simulated=True,
    profiles=("baseline", "ngram"),
    against="baseline",
    methods={"baseline": "none", "ngram": "ngram"},
    num_speculative_tokens={"ngram": 4},
    conditions=(KEYS[0].condition,),
    levels=(1,),
    repeats=1,
    sessions=1,
    seed=1,
    quick=False,
    order="together",
    sampling={},
    hardware={},
)


def failure(key: CellKey, reason: str = "All 1 warm-up requests failed (transport_error: reset).") -> StoredEvent:
    return StoredEvent("2026-11-29T16:20:00.000Z", "cell-failed", reason, {"cell": str(key)})


def cell(key: CellKey) -> CellResult:
    few = distribution([1.0])
    return CellResult(
        key=key,
        order=0,
        started_at="2026-11-29T16:20:00.000Z",
        window_s=1.0,
        output_tokens_per_s=10.0,
        requests_per_s=1.0,
        outcomes={"ok": 1},
        ttft_s=few,
        tpot_s=few,
        e2e_s=few,
        chunk_gap_s=few,
        output_tokens=few,
        prompt_tokens=few,
        client=ClientHealth(0.001, 0.1, 1.0, 0.0),
        window=None,
        idle=None,
        gauges=GaugeSummary(0),
        client_tokens_total=10,
    )


def test_failed_cells_are_named_with_reasons_and_the_rest_is_counted() -> None:
    (check,) = failed_cells([failure(key) for key in KEYS], [])
    assert check.cause.startswith("4 cells failed")
    assert "transport_error: reset" in check.cause
    assert "and 1 more" in check.cause


def test_a_cell_that_was_measured_after_its_failure_is_no_failure() -> None:
    assert failed_cells([failure(KEYS[0])], [cell(KEYS[0])]) == ()
    (check,) = failed_cells([failure(KEYS[0]), failure(KEYS[1])], [cell(KEYS[0])])
    assert check.cause.startswith("1 cell failed")


def test_planned_cells_that_failed_and_stand_not_are_known_by_their_keys() -> None:
    plan = replace(MANIFEST, profiles=("baseline", "ngram"), conditions=(KEYS[0].condition,), levels=(1, 2, 4, 8))
    assert failed_keys(plan, [failure(key) for key in KEYS[:2]], [cell(KEYS[0])]) == (KEYS[1],)
    assert failed_keys(plan, [], []) == ()


def test_a_damaged_request_costs_the_pairs_by_prompt_and_not_the_answer(tmp_path: Path) -> None:
    manifest = MANIFEST
    folder = RunFolder(tmp_path)
    folder.write_manifest(manifest)
    for profile in manifest.profiles:
        folder.append_cell(cell(replace(KEYS[0], profile=profile)))
    folder.close()
    (tmp_path / "requests.jsonl").write_text("garbage\n")
    folder.append_event("cell-failed", "died", cell=str(KEYS[1]))
    folder.close()
    findings = find_findings(folder)
    assert len(findings.conditions) == 1
    assert "cells-failed" in [check.name for check in findings.checks]
    assert any("pairs by prompt are left out" in note and "requests.jsonl:1" in note for note in findings.notes)
