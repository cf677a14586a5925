"""Two runs: what differs, what changed, and what may not be compared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loadgen.analysis.compare import FIELDS, RunFacts, compare, differences, facts_of, welch
from loadgen.analysis.findings import analyse
from loadgen.store.model import CellResult, Condition, Manifest, ServerFacts

RunFactory = Callable[..., list[CellResult]]
ManifestFactory = Callable[..., Manifest]
RATIOS = {1: 1.5, 4: 1.3, 16: 0.9}


def server(**effective: Any) -> tuple[ServerFacts, ...]:
    return (ServerFacts("ngram", 0, "", "Qwen/Qwen3-8B", "0.32.0", 1.0, (), effective),)


def facts(cells: list[CellResult], manifest: Manifest, servers: tuple[ServerFacts, ...] = ()) -> RunFacts:
    return RunFacts(manifest, analyse(manifest, cells, servers), tuple(cells), servers)


@pytest.fixture
def first(run_of: RunFactory, manifest: ManifestFactory) -> RunFacts:
    return facts(run_of(RATIOS), manifest(), server(graph="full"))


def test_equal_runs_have_no_difference_and_no_change(first: RunFacts) -> None:
    found = compare(first, replace(first, manifest=replace(first.manifest, run_id="again")))
    assert found.differences == ()
    assert all(change.ratio.value == pytest.approx(1.0) for change in found.changes)
    assert found.surely_worse == ()
    assert "No change" in found.sentence


def test_each_difference_is_named(first: RunFacts, manifest: ManifestFactory) -> None:
    other = replace(
        first,
        manifest=replace(first.manifest, hardware={"preset": "h200-8b", "cpus": 4}, seed=2),
        findings=replace(first.findings, vllm_version="0.31.0"),
    )
    found, _ = differences(first, other)
    assert {difference.field for difference in found} == {"hardware", "vllm", "seed", "client"}
    assert set(facts_of(first)) <= set(FIELDS)


def test_other_prompts_count_only_where_nothing_else_explains_them(first: RunFacts) -> None:
    cells = tuple(replace(cell, prompts_sha256="x") for cell in first.cells)
    assert [d.field for d in differences(first, replace(first, cells=cells))[0]] == ["prompts"]
    seeded = replace(first, cells=cells, manifest=replace(first.manifest, seed=2))
    assert [d.field for d in differences(first, seeded)[0]] == ["seed"]


def test_server_settings_count_unless_the_version_explains_them(first: RunFacts) -> None:
    other = replace(first, servers=server(graph="piecewise"))
    assert [d.field for d in differences(first, other)[0]] == ["server-settings"]
    newer = replace(other, findings=replace(first.findings, vllm_version="0.33.0"))
    found, notes = differences(first, newer)
    assert [d.field for d in found] == ["vllm"]
    assert "ngram: graph" in notes[0]
    unknown = replace(first, servers=server())
    assert differences(first, unknown)[0] == ()


def test_a_sure_loss_is_found_and_named(first: RunFacts, run_of: RunFactory, manifest: ManifestFactory) -> None:
    slower = facts(run_of(RATIOS | {4: 1.0}), manifest(), first.servers)
    found = compare(first, slower)
    (worst,) = found.surely_worse
    assert (worst.profile, worst.concurrency) == ("ngram", 4)
    assert worst.ratio.value == pytest.approx(1.0 / 1.3)
    assert worst.better is False
    assert "ngram with 4 in flight" in found.sentence
    turn = found.turns[0]
    assert turn.before.status == "found"


def test_two_repeats_give_no_interval_and_no_verdict(run_of: RunFactory, manifest: ManifestFactory) -> None:
    runs = [facts(run_of(ratios, noise=(0.99, 1.01)), manifest()) for ratios in (RATIOS, {1: 0.5, 4: 0.5, 16: 0.5})]
    found = compare(*runs)
    assert all(change.ratio.ci95 is None and change.better is None for change in found.changes)
    assert found.surely_worse == ()
    assert "no interval" in found.sentence


def test_levels_of_one_run_alone_are_counted(first: RunFacts, run_of: RunFactory, manifest: ManifestFactory) -> None:
    found = compare(first, facts(run_of({1: 1.5, 8: 1.0}), manifest(), first.servers))
    assert {change.concurrency for change in found.changes} == {1}
    assert any("left out" in note for note in found.notes)


def test_welch_matches_a_textbook_case() -> None:
    # Student's sleep data as two samples (unpaired): t = -1.8608, df = 17.776, p = 0.0794
    one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    _, p_value = welch(one, two)
    assert p_value == pytest.approx(0.0794, abs=1e-4)


def test_a_workload_more_is_one_difference_in_words(first: RunFacts) -> None:
    both = (*first.manifest.conditions, Condition("chat", 60, 0.0))
    other = replace(first, manifest=replace(first.manifest, conditions=both))
    (found,) = differences(first, other)[0]
    assert (found.field, found.before, found.after) == ("workloads", "code-edit", "chat and code-edit")


def test_another_length_of_the_same_workload_is_a_difference_of_lengths(first: RunFacts) -> None:
    longer = tuple(replace(c, input_tokens=2048) for c in first.manifest.conditions)
    (found,) = differences(first, replace(first, manifest=replace(first.manifest, conditions=longer)))[0]
    assert found.field == "lengths"
    assert found.after == "code-edit input tokens 2048"


def test_differences_are_words_and_no_tuples(first: RunFacts) -> None:
    manifest = replace(
        first.manifest,
        num_speculative_tokens={"ngram": 9},
        conditions=tuple(replace(c, input_tokens=7, temperature=0.7) for c in first.manifest.conditions),
        sampling={"top_p": 0.5},
    )
    found, _ = differences(first, replace(first, manifest=manifest))
    assert {d.field for d in found} >= {"profiles", "lengths", "temperature", "sampling"}
    assert not any(mark in text for d in found for text in (d.before, d.after) for mark in "()[]{}'")
    assert next(d.after for d in found if d.field == "profiles") == "baseline no speculation, ngram ngram K = 9"
