"""Others' results: vllm bench serve (keys of 0.32), GuideLLM 0.8.1 and AIPerf 0.13.0 (reports of either, rescaled)."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.store.foreign.read import read_foreign

DATA = Path(__file__).resolve().parents[1] / "data" / "foreign"


def changed(name: str, tmp_path: Path, **changes: Any) -> Path:
    data = json.loads((DATA / name).read_text(encoding="utf-8"))
    path = tmp_path / name
    path.write_text(json.dumps(data | changes), encoding="utf-8")
    return path


def test_vllm_bench_serve() -> None:
    (cell,) = read_foreign(DATA / "vllm-ngram-c1.json")
    assert (cell.tool, cell.level, cell.model) == ("vllm bench serve", 1, "Qwen/Qwen3-8B")
    assert cell.output_tokens_per_s == pytest.approx(300, rel=0.02)
    assert cell.tpot_s.mean == pytest.approx(0.0033, rel=0.02)
    assert cell.tpot_s.p90 is None
    assert cell.e2e_s.n == 0
    # E2E is not in the file; Little's law takes it from TTFT and TPOT
    assert cell.in_flight_mean == pytest.approx(1.0, abs=0.1)
    assert cell.draft_tokens == 4 * (cell.drafts or 0)
    assert cell.accepted_per_position[0] == pytest.approx(0.7 * (cell.drafts or 0))


def test_vllm_bench_sweep_writes_a_list_of_runs() -> None:
    assert [cell.level for cell in read_foreign(DATA / "vllm-baseline-c8.json")] == [8, 8, 8]


def test_appended_vllm_results_are_a_line_each(tmp_path: Path) -> None:
    one = json.dumps(json.loads((DATA / "vllm-ngram-c1.json").read_text(encoding="utf-8")))
    path = tmp_path / "appended.json"
    path.write_text(f"{one}\n{one}", encoding="utf-8")
    assert len(read_foreign(path)) == 2


def test_detailed_vllm_results_give_the_lengths_too(tmp_path: Path) -> None:
    (cell,) = read_foreign(changed("vllm-ngram-c1.json", tmp_path, output_lens=[90, 110], input_lens=[300, 310]))
    assert cell.output_tokens.mean == 100
    assert cell.prompt_tokens.max == 310


def test_an_open_loop_vllm_result_has_no_level(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="max-concurrency"):
        read_foreign(changed("vllm-ngram-c1.json", tmp_path, max_concurrency=None))


def test_guidellm_by_level_with_its_own_names_for_our_words() -> None:
    cells = read_foreign(DATA / "guidellm-baseline.json")
    assert [cell.level for cell in cells] == [1, 2, 4, 8, 16]
    assert cells[0].tool == "GuideLLM 0.8.1"
    assert cells[0].tpot_s.mean == pytest.approx(0.005)
    assert cells[0].ttft_s.mean == pytest.approx(0.021)
    assert cells[3].in_flight_mean == pytest.approx(7.84)
    assert cells[3].output_tokens_per_s == pytest.approx(1200)
    assert cells[0].ok == 12


def test_a_guidellm_rate_sweep_has_no_level(tmp_path: Path) -> None:
    data = json.loads((DATA / "guidellm-baseline.json").read_text(encoding="utf-8"))
    data["benchmarks"][0]["config"]["strategy"] = {"type_": "poisson", "rate": 4.0}
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match="poisson, which has no level"):
        read_foreign(path)


def test_aiperf_one_level_a_file() -> None:
    (cell,) = read_foreign(DATA / "aiperf-ngram-c4.json")
    assert (cell.tool, cell.level) == ("AIPerf 0.13.0", 4)
    assert cell.output_tokens_per_s == pytest.approx(875)
    assert cell.tpot_s.mean == pytest.approx(0.0056 / 1.25)
    assert cell.e2e_s.p99 is not None
    assert cell.in_flight_mean == pytest.approx(3.92)


def test_an_aiperf_run_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did not finish"):
        read_foreign(changed("aiperf-ngram-c4.json", tmp_path, is_complete=False, incomplete_reason="stalled"))


def test_aiperf_counts_drafts_where_the_server_told(tmp_path: Path) -> None:
    counts = {"total_spec_decode_steps": 100, "total_draft_tokens": 400, "total_accepted_draft_tokens": 180}
    metrics = {name: {"unit": "count", "avg": value} for name, value in counts.items()}
    (cell,) = read_foreign(changed("aiperf-ngram-c4.json", tmp_path, **metrics))
    assert (cell.drafts, cell.draft_tokens, cell.accepted_tokens) == (100, 400, 180)


@pytest.mark.parametrize(
    ("text", "words"), [("{}", "no result that is known"), ("not json", "no JSON"), ("[]", "known")]
)
def test_other_files_are_refused_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        read_foreign(path)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    data = json.loads((DATA / "aiperf-ngram-c4.json").read_text(encoding="utf-8"))
    del data["benchmark_duration"]
    path = tmp_path / "torn.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match="benchmark_duration does not fit"):
        read_foreign(path)
