import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from loadgen.analysis.findings import analyse
from loadgen.analysis.model import BreakEvenStatus
from loadgen.load.summary import Distribution
from loadgen.store.model import Condition, ServerFacts

C86 = {1: 1.7, 2: 1.6, 4: 1.35, 8: 1.1, 16: 0.95, 32: 0.8}
CHAT = Condition("chat", 128, 0.0)


def server(profile: str, version: str = "0.32.0", **effective: Any) -> ServerFacts:
    return ServerFacts(profile, 0, "http://127.0.0.1:8000", "model", version, 1.0, (), effective)


def test_c86_the_break_even_lies_between_8_and_16(run_of: Any, manifest: Any) -> None:
    findings = analyse(manifest(), run_of(C86), [server("baseline"), server("ngram", max_num_seqs=256)])
    verdict = findings.conditions[0].profiles[0].break_even["output_tokens_per_s"]
    assert verdict.status is BreakEvenStatus.FOUND
    assert [(c.concurrency, c.ci95, c.level_below, c.level_above, c.direction) for c in verdict.crossings] == [
        (12.0, (8.0, 15.0), 8, 16, "down")
    ]
    assert findings.answer == "ngram pays off up to 12 concurrent requests on code-edit (bracket 8 to 15)."
    assert findings.recommendation is not None
    assert findings.recommendation.value == [[1, 12, 4], [13, 256, 0]]
    assert "disable_by_batch_size would have been 13" in findings.recommendation.why


def test_an_edge_below_the_turn_is_explained(run_of: Any, manifest: Any) -> None:
    cells = [
        replace(
            cell, window=replace(w, iteration_tokens=replace(w.iteration_tokens, count=w.iteration_tokens.count / 0.8))
        )
        for cell in run_of(C86)
        if (w := cell.window) and w.iteration_tokens
    ]
    found = analyse(manifest(), cells, [server("baseline"), server("ngram", max_num_seqs=256)]).recommendation
    assert found is not None
    assert found.value == [[1, 10, 4], [11, 256, 0]]
    assert "requests per engine step: 12 in flight are about 10 there" in found.why
    same = analyse(manifest(), run_of(C86), [server("baseline"), server("ngram", max_num_seqs=256)]).recommendation
    assert same is not None
    assert "in flight are about" not in same.why


def test_c86_overlapping_repeats_are_inconclusive(run_of: Any, manifest: Any) -> None:
    findings = analyse(manifest(), run_of({1: 1.05, 4: 1.02, 16: 0.97}, noise=(0.8, 1.0, 1.25)))
    verdict = findings.conditions[0].profiles[0].break_even["output_tokens_per_s"]
    assert verdict.status is BreakEvenStatus.INCONCLUSIVE
    assert findings.recommendation is None


def test_c86_invalid_levels_are_left_out(run_of: Any, manifest: Any) -> None:
    cells = [
        replace(cell, client=replace(cell.client, loop_lag_p99_s=0.5)) if cell.key.level == 32 else cell
        for cell in run_of(C86)
    ]
    profile = analyse(manifest(), cells).conditions[0].profiles[0]
    top = profile.levels[-1]
    assert (top.valid, top.n, top.speedup, top.voided_cells, top.voided_baseline_cells) == (False, 0, None, 3, 3)
    assert top.checks[0].name == "client-bound"
    assert profile.break_even["output_tokens_per_s"].tested_levels == (1, 2, 4, 8, 16)


def test_a_run_on_two_workloads_is_one_sentence(run_of: Any, manifest: Any) -> None:
    cells = run_of(C86) + run_of({1: 0.9, 8: 0.8, 32: 0.7}, condition=CHAT)
    plan = manifest(conditions=(Condition("code-edit", 512, 0.0), CHAT), simulated=True)
    findings = analyse(plan, cells)
    assert findings.answer == (
        "SIMULATED: ngram pays off up to 12 concurrent requests on code-edit (bracket 8 to 15) and never pays off on "
        "chat (1 to 32 concurrent requests)."
    )
    assert findings.recommendation is not None
    assert "On chat it never pays off" in findings.recommendation.why


def test_two_repeats_and_quick_runs_are_indicative(run_of: Any, manifest: Any) -> None:
    two = analyse(manifest(), run_of(C86, noise=(0.99, 1.01)))
    assert two.answer.startswith("indicative: ")
    assert all(
        level.speedup is not None and level.speedup.ci95 is None for level in two.conditions[0].profiles[0].levels
    )
    quick = analyse(manifest(quick=True), run_of(C86))
    assert quick.answer.startswith("indicative: ")


def test_c36_empty_distributions_give_none_and_json_without_nan(run_of: Any, manifest: Any) -> None:
    empty = Distribution(0)
    cells = [replace(cell, tpot_s=empty, ttft_s=empty, e2e_s=empty, output_tokens=empty) for cell in run_of(C86)]
    findings = analyse(manifest(), cells)
    level = findings.conditions[0].profiles[0].levels[0]
    assert (level.tpot_speedup, level.ttft_ratio, level.e2e_speedup, level.ttft_p50_s) == (None, None, None, None)
    assert findings.conditions[0].profiles[0].break_even["tpot"].status is BreakEvenStatus.INCONCLUSIVE
    json.dumps(asdict(findings), allow_nan=False)


def test_nothing_measured_says_so(manifest: Any) -> None:
    findings = analyse(manifest(), [])
    assert findings.answer.startswith("Nothing can be said")
    assert findings.conditions == ()


def test_c35_all_requests_failed_gives_no_numbers_and_no_crash(run_of: Any, manifest: Any) -> None:
    empty = Distribution(0)
    cells = [
        replace(
            cell,
            outcomes={"not_found": 20},
            output_tokens_per_s=0.0,
            ttft_s=empty,
            tpot_s=empty,
            e2e_s=empty,
            output_tokens=empty,
            prompt_tokens=empty,
            window=None,
            idle=None,
        )
        for cell in run_of(C86)
    ]
    findings = analyse(manifest(), cells)
    assert {check.name for check in findings.conditions[0].profiles[0].levels[0].checks} >= {"success", "no-output"}
    assert "not settled" in findings.answer


def test_a_cell_without_partner_is_named(run_of: Any, manifest: Any) -> None:
    cells = [cell for cell in run_of(C86) if not (cell.key.profile == "baseline" and cell.key.level == 32)]
    findings = analyse(manifest(), cells, interrupted=True)
    assert any("no baseline partner" in note and "L32" in note for note in findings.notes)
    assert findings.answer.startswith("interrupted: ")


@pytest.mark.parametrize(
    ("version", "method", "setting"),
    [
        ("0.32.0", "ngram", "num_speculative_tokens_per_batch_size"),
        ("0.23.0", "ngram", "two_pools"),
        ("0.32.0", "suffix", "two_pools"),
        ("0.32.0", "ngram_gpu", "two_pools"),
        ("0.26.0", "eagle3", "two_pools"),
        ("0.32.0", "eagle3", "num_speculative_tokens_per_batch_size"),
        ("0.9.2", "ngram", "two_pools"),
        ("0.9.2", "suffix", "two_pools"),
        ("0.7.3", "ngram", "disable_by_batch_size"),
    ],
)
def test_the_setting_fits_version_and_method(
    run_of: Any, manifest: Any, version: str, method: str, setting: str
) -> None:
    plan = manifest(methods={"baseline": "none", "ngram": method})
    found = analyse(plan, run_of(C86), [server("baseline", version), server("ngram", version)]).recommendation
    assert found is not None
    assert found.setting == setting
    assert "disable_by_batch_size would have been 13" in found.why


H200_K3 = {1: 1.63, 2: 1.52, 4: 1.51, 8: 1.47, 16: 1.35, 32: 1.35, 64: 1.10, 128: 0.63}


EDGES = [[1, 72, 3], [73, 256, 0]]


@pytest.mark.parametrize(
    ("version", "setting", "value", "caveat"),
    [
        # A draft model is on runner V1 there, which heeds a schedule and pays for it with PIECEWISE graphs.
        ("0.26.0", "num_speculative_tokens_per_batch_size", EDGES, "forces PIECEWISE CUDA graphs"),
        ("0.28.0", "two_pools", {"edges": EDGES}, "ignores a schedule on model runner V2"),
    ],
)
def test_h200_a_turn_at_the_graph_capture_limit_may_be_an_artefact(
    run_of: Any, manifest: Any, version: str, setting: str, value: object, caveat: str
) -> None:
    plan = manifest(methods={"baseline": "none", "ngram": "draft_model"}, num_speculative_tokens={"ngram": 3})
    servers = [server("baseline", version), server("ngram", version, max_graph_size=512)]
    found = analyse(plan, run_of(H200_K3), servers).recommendation
    assert found is not None
    assert (found.setting, found.value) == (setting, value)
    assert caveat in found.why
    assert "raise max_cudagraph_capture_size above 512" in found.why


def test_the_command_line_tells_what_the_server_does_not(run_of: Any, manifest: Any) -> None:
    servers = [replace(server("baseline"), command=("vllm", "serve", "--max-num-seqs", "64"))]
    found = analyse(manifest(), run_of(C86), servers).recommendation
    assert found is not None
    assert found.value == [[1, 12, 4], [13, 64, 0]]


def test_a_server_that_accepts_nothing_gets_no_advice(run_of: Any, manifest: Any) -> None:
    def rejecting(cell: Any) -> Any:
        if cell.key.profile == "baseline":
            return cell
        return replace(cell, window=replace(cell.window, accepted_tokens=0.0, accepted_per_position=(0.0,) * 4))

    findings = analyse(manifest(), [rejecting(cell) for cell in run_of({1: 0.8, 8: 0.7})])
    assert findings.recommendation is None
    assert "accepted no draft at all" in findings.answer


def test_a_simulated_or_indicative_recommendation_says_so(run_of: Any, manifest: Any) -> None:
    found = analyse(manifest(simulated=True, quick=True), run_of(C86)).recommendation
    assert found is not None
    assert found.holds_for.endswith(", simulated")
    assert "Indicative only" in found.why


def test_looping_outputs_void_the_claim_about_acceptance(run_of: Any, manifest: Any) -> None:
    cells = [replace(cell, repeated_ngram_share=0.9) for cell in run_of(C86)]
    assert any("acceptance says nothing" in note for note in analyse(manifest(), cells).notes)


def test_an_unsettled_answer_says_what_is_known(run_of: Any, manifest: Any) -> None:
    gains = analyse(manifest(), run_of({1: 1.7, 8: 1.3, 16: 1.0}))
    assert gains.answer == "ngram gains on code-edit at 1, 8 concurrent requests, but where it turns is not settled."


def test_a_level_whose_cells_failed_is_named_in_the_answer(run_of: Any, manifest: Any) -> None:
    cells = run_of({1: 1.7, 8: 1.3})
    failed = [replace(cells[0].key, level=32, repeat=repeat) for repeat in range(3)]
    assert "(32 was tried and has no valid cell)" in analyse(manifest(), cells, failed=failed).answer
    assert "was tried" not in analyse(manifest(), cells).answer
    assert "was tried" not in analyse(manifest(), run_of({1: 1.7, 8: 1.3, 32: 0.8}), failed=failed[:1]).answer


def test_a_level_whose_cells_are_void_is_named_too(run_of: Any, manifest: Any) -> None:
    cells = [
        replace(cell, client=replace(cell.client, cpu_share=2.0)) if cell.key.level >= 16 else cell
        for cell in run_of({1: 1.7, 8: 1.3, 16: 0.9, 32: 0.8})
    ]
    said = analyse(manifest(), cells).answer
    assert "(16, 32 were tried and have no valid cell)" in said


def test_advice_from_one_load_holds_for_that_load_only(run_of: Any, manifest: Any) -> None:
    found = analyse(manifest(), run_of({1: 1.5})).recommendation
    assert found is not None
    assert found.holds_for == "ngram on code-edit, 1 concurrent request only"


def test_an_unsettled_clause_is_set_off_from_the_next(run_of: Any, manifest: Any) -> None:
    cells = run_of({1: 1.7, 8: 1.3, 16: 1.0}) + run_of({1: 0.9, 8: 0.8, 32: 0.7}, condition=CHAT)
    plan = manifest(conditions=(Condition("code-edit", 512, 0.0), CHAT))
    assert "is not settled, and never pays off on chat" in analyse(plan, cells).answer


def test_conditions_of_one_workload_are_told_apart(run_of: Any, manifest: Any) -> None:
    long = Condition("code-edit", 4000, 0.0)
    cells = run_of(C86) + run_of({1: 1.7, 32: 1.2}, condition=long)
    answer = analyse(manifest(conditions=(Condition("code-edit", 512, 0.0), long)), cells).answer
    assert "on code-edit at 512 tokens (bracket 8 to 15)" in answer
    assert (
        "pays off on code-edit at 4000 tokens at every load up to 32 concurrent requests, still 1.20x there" in answer
    )


def test_three_sessions_are_the_units_and_carry_no_note(run_of: Any, manifest: Any) -> None:
    cells = [cell for session in range(3) for cell in run_of(C86, session=session)]
    findings = analyse(manifest(sessions=3), cells)
    level = findings.conditions[0].profiles[0].levels[0]
    assert level.speedup is not None
    assert (level.n, level.speedup.n) == (9, 3)
    assert findings.notes == ()


def test_profiles_for_attribution_are_measured_and_never_advised(run_of: Any, manifest: Any) -> None:
    sync, probe = [run_of({1: 1.4, 8: 1.3}, profile=name) for name in ("baseline-sync", "cost-probe")]
    cells = {str(cell.key): cell for cell in [*sync, *probe, *run_of(C86)]}.values()
    plan = manifest(
        profiles=("baseline", "baseline-sync", "cost-probe", "ngram"),
        methods={"baseline": "none", "baseline-sync": "none", "cost-probe": "draft_model", "ngram": "ngram"},
    )
    findings = analyse(plan, list(cells))
    assert findings.answer == "ngram pays off up to 12 concurrent requests on code-edit (bracket 8 to 15)."
    assert findings.recommendation is not None
    assert findings.recommendation.holds_for.startswith("ngram ")
    assert len(findings.conditions[0].profiles) == 3


def test_speculation_that_pays_only_above_switches_off_below(run_of: Any, manifest: Any) -> None:
    found = analyse(manifest(), run_of({1: 0.8, 8: 0.9, 32: 1.2})).recommendation
    assert found is not None
    # 0.9 at 8 to 1.2 at 32 passes 1 at 13.3.
    assert found.value == [[1, 13, 0], [14, 256, 4]]
    assert "could not say this" in found.why


def test_the_answer_speaks_only_of_loads_that_gain(run_of: Any, manifest: Any) -> None:
    top = analyse(manifest(), run_of({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0, 16: 1.0, 32: 1.3}))
    assert top.answer == (
        "ngram gains on code-edit at 32 concurrent requests (1.30x there), but 1 to 16 are not told from 1.0."
    )
    one = analyse(manifest(), run_of({8: 1.5})).answer
    assert one == "ngram gains on code-edit at 8 concurrent requests, the only level measured (1.50x)."
    noisy = run_of({1: 0.7, 2: 0.85}, noise=(0.7, 1.0, 1.45)) + run_of({4: 1.0, 8: 1.0, 16: 1.0, 32: 1.3})
    leaning = analyse(manifest(), noisy)
    assert "every load" not in leaning.answer
    assert "whether it costs at 1, 2" in leaning.answer


def test_a_level_without_baseline_cells_is_named_in_the_answer(run_of: Any, manifest: Any) -> None:
    cells = [cell for cell in run_of(C86) if cell.key.profile != "baseline" or cell.key.level != 32]
    assert "(32 was tried and has no valid cell)" in analyse(manifest(), cells).answer


def test_a_gain_at_the_top_is_advised_for_that_load(run_of: Any, manifest: Any) -> None:
    found = analyse(manifest(), run_of({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0, 16: 1.0, 32: 1.3})).recommendation
    assert found is not None
    assert (found.setting, found.value, found.when) == ("num_speculative_tokens", 4, "if 32 requests run at once")
    assert found.beyond == "At 1 to 16 there is no sure gain and no sure cost."
    assert "every load" not in found.why
    one = analyse(manifest(), run_of({8: 1.5})).recommendation
    assert one is not None
    assert "every load" not in one.why


def test_another_workload_that_gains_or_is_open_is_told(run_of: Any, manifest: Any) -> None:
    plan = manifest(conditions=(Condition("code-edit", 512, 0.0), CHAT))
    gains = analyse(plan, run_of(C86) + run_of({1: 1.2, 8: 1.2}, condition=CHAT)).recommendation
    assert gains is not None
    assert "On chat it pays off at every load up to 8" in gains.why
    unclear = run_of({1: 1.0, 8: 1.0}, condition=CHAT)
    still = analyse(plan, run_of(C86) + unclear).recommendation
    assert still is not None
    assert "On chat that is not settled." in still.why


@pytest.mark.parametrize("version", ["0.32.0", "0.23.0"])
def test_a_turn_below_one_request_per_step_is_left_to_a_router(run_of: Any, manifest: Any, version: str) -> None:
    cells = [
        replace(
            cell, window=replace(w, iteration_tokens=replace(w.iteration_tokens, count=w.iteration_tokens.count / 0.4))
        )
        for cell in run_of({1: 1.6, 2: 0.8, 4: 0.7})
        if (w := cell.window) and w.iteration_tokens
    ]
    found = analyse(manifest(), cells, [server("baseline", version), server("ngram", version)]).recommendation
    assert found is not None
    assert (found.setting, found.value) == ("two_pools", {"edges": [[1, 1, 4], [2, 256, 0]]})
