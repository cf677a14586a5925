"""Reading profiles: the shipped ten, and each fault as one sentence with file, line and cure."""

import json
from pathlib import Path

import pytest
import yaml

from loadgen.errors import UsageError
from loadgen.profiles.loader import list_profiles, load_profile, parse_profile

TEN = [
    "baseline",
    "baseline-sync",
    "cost-probe",
    "draft-model",
    "eagle",
    "eagle3",
    "mtp",
    "ngram",
    "ngram-gpu",
    "suffix",
]


def test_the_ten_profiles_are_there_and_load(shipped: Path) -> None:
    assert list_profiles(shipped) == TEN
    assert {name: load_profile(name, shipped).method for name in TEN} == {
        "baseline": "none",
        "baseline-sync": "none",
        "cost-probe": "draft_model",
        "draft-model": "draft_model",
        "eagle": "eagle",
        "eagle3": "eagle3",
        "mtp": "mtp",
        "ngram": "ngram",
        "ngram-gpu": "ngram_gpu",
        "suffix": "suffix",
    }


@pytest.mark.parametrize("name", [n for n in TEN if n != "baseline-sync"])
def test_a_profile_differs_from_baseline_in_speculation_alone(shipped: Path, name: str) -> None:
    def others(profile: str) -> dict[str, object]:
        settings = load_profile(profile, shipped).settings
        return {key: value for key, value in settings.items() if key != "speculative-config"}

    assert others(name) == others("baseline")


@pytest.mark.parametrize("name", TEN)
def test_vllm_can_read_the_file_and_it_says_what_it_is(shipped: Path, name: str) -> None:
    text = (shipped / f"{name}.yaml").read_text(encoding="utf-8")

    # vLLM calls .items() on the result, so that a file of comments alone would end it.
    assert isinstance(yaml.safe_load(text), dict)
    assert text.startswith("# ")
    assert "# Needs: " in text
    assert name in ("baseline", "baseline-sync") or "ocumented: " in text


def test_values_of_the_design_stand_in_the_files(shipped: Path) -> None:
    ngram = load_profile("ngram", shipped).speculative
    suffix = load_profile("suffix", shipped).speculative
    eagle = load_profile("eagle", shipped)
    probe = load_profile("cost-probe", shipped).speculative

    assert ngram is not None
    assert dict(ngram.raw) == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 5,
    }
    assert suffix is not None
    assert suffix.num_speculative_tokens == 8
    assert eagle.speculative is not None
    assert eagle.speculative.raw["draft_tensor_parallel_size"] == 1
    assert eagle.required_model == "meta-llama/Meta-Llama-3-8B-Instruct"
    assert probe is not None
    assert probe.is_cost_probe


def test_a_path_is_taken_as_well_as_a_name(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text("max-num-seqs: 8\nspeculative_config: {method: suffix}\n", encoding="utf-8")

    by_path, by_name = load_profile(str(path)), load_profile("own", tmp_path)

    assert by_path == by_name
    assert by_path.path == path
    assert by_path.speculative is not None
    assert by_path.speculative.num_speculative_tokens == 24  # vLLM's own default for suffix
    assert list(by_path.settings) == ["max-num-seqs", "speculative-config"]


def test_the_command_lines_json_is_taken_too() -> None:
    value = json.dumps({"method": "ngram", "num-speculative-tokens": 3, "prompt_lookup_max": 4})

    profile = parse_profile(f"speculative-config: '{value}'\n", name="x", label="x.yaml")

    assert profile.speculative is not None
    assert profile.speculative.num_speculative_tokens == 3
    assert profile.settings["speculative-config"]["num_speculative_tokens"] == 3


def test_unknown_names_name_the_nearest(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Unknown profile 'ngrm' \(did you mean ngram\?\); known are baseline,"):
        load_profile("ngrm", shipped)
    with pytest.raises(UsageError, match="no profile file"):
        load_profile(str(tmp_path / "gone.yaml"))
    with pytest.raises(UsageError, match=r"does not end with \.yaml"):
        load_profile(str(tmp_path / "gone.json"))
    with pytest.raises(UsageError, match="no folder"):
        list_profiles(tmp_path / "gone")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"a: \xff\n")

    with pytest.raises(UsageError, match="not UTF-8"):
        load_profile("bad", tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1\nb: 2\n", r"^f\.yaml:2: this is no valid YAML"),
        ("- a\n", r"^f\.yaml:1: a profile is a mapping"),
        ("just text\n", r"^f\.yaml:1: a profile is a mapping"),
        ("a: 1\nb: 2\na: 3\n", r"^f\.yaml:3: a stands here and in line 1"),
        ("max_num_seqs: 1\nmax-num-seqs: 2\n", r"^f\.yaml:2: max-num-seqs and max_num_seqs are the same"),
        ("speculative-config:\n", r"^f\.yaml:1: speculative-config has no value"),
        ("speculative-config: {}\n", r"^f\.yaml:1: speculative-config is empty"),
        ("speculative-config: ngram\n", r"text that is no JSON"),
        ("speculative-config: [1]\n", r"no mapping"),
        ("x: 1\nnum_speculative_tokens: 3\n", r"^f\.yaml:2: num_speculative_tokens belongs inside"),
        ("num-speculative-tokens: 3\n", r"belongs inside"),
        ("spec-method: ngram\n", r"write it inside"),
        ("--max-num-seqs: 3\n", r"write max-num-seqs"),
        ("disable-log-stats: true\n", r"takes away the metrics"),
        ("model:\n", r"has no value"),
    ],
)
def test_obvious_faults_of_the_file(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_profile(text, name="f", label="f.yaml")

    assert "\n" not in str(caught.value)


def test_options_of_vllm_that_loadgen_does_not_know_pass() -> None:
    profile = parse_profile("some-future-option: 3\nmax_num_seqs: 4\n", name="f", label="f.yaml")

    assert dict(profile.settings) == {"some-future-option": 3, "max_num_seqs": 4}
    assert profile.method == "none"


def test_an_empty_file_has_no_options() -> None:
    assert dict(parse_profile("# nothing\n", name="f", label="f.yaml").settings) == {}


def test_a_folder_that_ends_like_a_profile_is_none(tmp_path: Path) -> None:
    (tmp_path / "ngram.yaml").mkdir()
    with pytest.raises(UsageError, match="Unknown profile 'ngram'"):
        load_profile("ngram", tmp_path)


@pytest.mark.parametrize(("key", "variable"), [("api-key", "VLLM_API_KEY"), ("hf_token", "HF_TOKEN")])
def test_a_secret_in_a_profile_is_refused_since_each_run_keeps_the_profile(key: str, variable: str) -> None:
    with pytest.raises(UsageError, match=f"export {variable}") as caught:
        parse_profile(f"{key}: hunter2\n", name="p", label="p.yaml")
    assert "hunter2" not in str(caught.value)
