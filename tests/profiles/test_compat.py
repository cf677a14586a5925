"""The preflight: profile against vLLM version, model and machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.profiles.compat import check_profile
from loadgen.profiles.loader import load_profile, parse_profile
from loadgen.profiles.model import ServerProfile
from loadgen.profiles.versions import instead_of_batch_size_limit, parse_version

ProfileOf = Callable[[str], ServerProfile]
NGRAM = "method: ngram\nnum_speculative_tokens: 4\nprompt_lookup_min: 2\nprompt_lookup_max: 5\n"
EAGLE3 = "method: eagle3\nmodel: RedHatAI/Qwen3-8B-speculator.eagle3\nnum_speculative_tokens: 3\n"
SCHEDULE = "num_speculative_tokens_per_batch_size: [[1, 8, 3], [9, 64, 0]]\n"


@pytest.mark.parametrize(
    ("name", "version", "since"),
    [
        ("suffix", "0.11.0", "0.11.1"),
        ("draft-model", "0.14.1", "0.15.0"),
        ("ngram-gpu", "0.17.0", "0.18.0"),
        ("mtp", "0.10.2", "0.11.0"),
        ("cost-probe", "0.19.0", "0.20.0"),
    ],
)
def test_nothing_runs_before_its_first_release(shipped: Path, name: str, version: str, since: str) -> None:
    profile = load_profile(name, shipped)

    with pytest.raises(UsageError, match=f"came with vLLM {since} and the server has {version}"):
        check_profile(profile, vllm_version=version, model=None)
    check_profile(profile, vllm_version=since, model=None)


def test_a_schedule_before_0_24_has_another_cure(profile_of: ProfileOf) -> None:
    with pytest.raises(UsageError, match=r"0\.24\.0 .*0\.23\.0; update vLLM or route high load"):
        check_profile(profile_of(NGRAM + SCHEDULE), vllm_version="0.23.0", model=None)


@pytest.mark.parametrize("version", ["0.9.1", "0.8"])
def test_too_old_a_vllm_is_refused(shipped: Path, version: str) -> None:
    with pytest.raises(UsageError, match=r"older than 0\.10"):
        check_profile(load_profile("baseline", shipped), vllm_version=version, model=None)


def test_a_newer_or_unreadable_version_is_said(shipped: Path) -> None:
    baseline = load_profile("baseline", shipped)

    assert "newer than 0.32" in check_profile(baseline, vllm_version="0.40.1", model=None)[0]
    assert "none that loadgen can read" in check_profile(baseline, vllm_version="dev", model=None)[0]
    assert check_profile(baseline, vllm_version="0.32.5+cpu", model=None) == []


@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-8B", "/data/Qwen3-8B", "qwen/qwen3-8b/", "RedHatAI/Qwen3-8B-FP8-dynamic"]
)
def test_a_draft_takes_its_target(profile_of: ProfileOf, model: str) -> None:
    assert check_profile(profile_of(EAGLE3), vllm_version="0.32.0", model=model) == []


@pytest.mark.parametrize("model", ["Qwen/Qwen3-80B", "Qwen/Qwen3-8B-Base", "meta-llama/Meta-Llama-3-8B-Instruct", "x"])
def test_a_draft_refuses_another_target_and_names_its_own(profile_of: ProfileOf, model: str) -> None:
    with pytest.raises(UsageError, match=r"belongs to Qwen/Qwen3-8B, not to .*; set MODEL=Qwen/Qwen3-8B"):
        check_profile(profile_of(EAGLE3), vllm_version=None, model=model)


def test_the_profiles_own_model_wins_over_the_argument() -> None:
    draft = "{method: draft_model, model: Qwen/Qwen3-0.6B, num_speculative_tokens: 2}"
    text = f"model: other/model\nspeculative-config: {draft}\n"
    profile = parse_profile(text, name="p", label="p.yaml")

    with pytest.raises(UsageError, match="not to other/model"):
        check_profile(profile, vllm_version=None, model="Qwen/Qwen3-8B")


def test_an_unknown_draft_is_said_to_be_unknown(profile_of: ProfileOf) -> None:
    profile = profile_of("method: eagle3\nmodel: me/head\nnum_speculative_tokens: 3")

    assert "does not know which model" in check_profile(profile, vllm_version=None, model="any/model")[0]


@pytest.mark.parametrize(("draft", "target", "fits"), [(1, 4, True), (4, 4, True), (2, 4, False), (2, 1, False)])
def test_the_drafts_tensor_parallelism_is_one_or_the_targets(
    profile_of: ProfileOf, draft: int, target: int, fits: bool
) -> None:
    profile = profile_of(EAGLE3 + f"draft_tensor_parallel_size: {draft}")

    if fits:
        check_profile(profile, vllm_version=None, model=None, tensor_parallel_size=target)
    else:
        with pytest.raises(UsageError, match=f"draft_tensor_parallel_size is {draft}"):
            check_profile(profile, vllm_version=None, model=None, tensor_parallel_size=target)


def test_a_schedule_with_data_parallelism_is_refused() -> None:
    text = "data-parallel-size: 2\nspeculative-config:\n" + "".join(
        f"  {line}\n" for line in (NGRAM + SCHEDULE).splitlines()
    )
    profile = parse_profile(text, name="p", label="p.yaml")

    with pytest.raises(UsageError, match="drops the schedule when data-parallel-size is 2"):
        check_profile(profile, vllm_version="0.32.0", model=None)


def test_ngram_gpu_with_a_schedule_ends_runner_v1(profile_of: ProfileOf) -> None:
    profile = profile_of(NGRAM.replace("ngram", "ngram_gpu") + SCHEDULE)

    with pytest.raises(UsageError, match=r"ends vLLM 0\.24\.0's engine"):
        check_profile(profile, vllm_version="0.24.0", model=None)
    assert any("model runner V1" in text for text in check_profile(profile, vllm_version="0.26.0", model=None))


@pytest.mark.parametrize(
    ("version", "told"), [("0.24.0", False), ("0.25.0", True), ("0.31.0", True), ("0.32.0", False)]
)
def test_runner_v2_that_ignores_the_schedule_is_told(profile_of: ProfileOf, version: str, told: bool) -> None:
    warnings = check_profile(profile_of(EAGLE3 + SCHEDULE), vllm_version=version, model=None)

    assert any("VLLM_USE_V2_MODEL_RUNNER=0" in text for text in warnings) is told


def test_a_schedule_that_ends_early_is_said_to_go_on(profile_of: ProfileOf) -> None:
    profile = profile_of(EAGLE3 + SCHEDULE)

    assert "goes on with K = 0" in check_profile(profile, vllm_version="0.32.0", model=None, max_num_seqs=256)[0]
    assert check_profile(profile, vllm_version="0.32.0", model=None, max_num_seqs=64) == []


def test_lost_async_scheduling_is_told_from_the_release_that_has_it(profile_of: ProfileOf) -> None:
    def told(version: str | None) -> bool:
        return any(
            "baseline-sync" in text for text in check_profile(profile_of(NGRAM), vllm_version=version, model=None)
        )

    assert told("0.32.0")
    assert told(None)
    assert not told("0.12.0")


def test_a_draft_model_loses_async_scheduling_in_0_26_only(shipped: Path) -> None:
    profile = load_profile("draft-model", shipped)

    told = {v: bool(check_profile(profile, vllm_version=v, model=None)) for v in ("0.26.0", "0.32.0")}

    assert told == {"0.26.0": True, "0.32.0": False}


@pytest.mark.parametrize(("name", "words"), [("ngram-gpu", "needs a GPU"), ("cost-probe", "first request")])
def test_the_cpu_build_refuses_what_ends_it(shipped: Path, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_profile(load_profile(name, shipped), vllm_version="0.32.0", model=None, device="cpu")


def test_the_cpu_build_speculates_from_0_20_on(shipped: Path) -> None:
    with pytest.raises(UsageError, match=r"from vLLM 0\.20\.0 on"):
        check_profile(load_profile("ngram", shipped), vllm_version="0.19.1", model=None, device="cpu")
    check_profile(load_profile("ngram", shipped), vllm_version="0.32.0", model=None, device="cpu")


def test_the_cure_for_disable_by_batch_size_follows_the_version() -> None:
    assert "0.24 or newer" in instead_of_batch_size_limit((0, 16, 0))
    assert instead_of_batch_size_limit((0, 32, 0)).startswith("use num_speculative_tokens_per_batch_size")
    assert "from vLLM 0.24 on" in instead_of_batch_size_limit(None)


def test_versions_as_servers_say_them() -> None:
    assert parse_version("0.26.0+cu130") == (0, 26, 0)
    assert parse_version("v0.9") == (0, 9, 0)
    assert parse_version("0.33.1rc2.dev5+g123") == (0, 33, 1)
    assert parse_version("nightly") is None
