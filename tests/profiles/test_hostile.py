"""A profile's file as nobody should write it: a profile or one sentence with file and line, never a traceback."""

from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.profiles.loader import dump_profile, load_profile, parse_profile
from loadgen.profiles.values import AUTO, whole
from loadgen.profiles.yaml_text import read_yaml
from loadgen.simulator.launch import LaunchOptions, launch

NINES = "9" * 400
SPEC = "speculative-config: {{method: ngram, num_speculative_tokens: 4, prompt_lookup_max: 5, {}}}"
REFUSED = {
    # huge numbers
    f"max-num-seqs: {NINES}": "whole number from 1 to 65536",
    f"max-num-seqs: {NINES * 13}": ":1: .* no int",
    f"x: 0x{'f' * 6000}": "nested too deeply or holds itself|more than 64 bits",
    f"any-option: {NINES}": "more than 64 bits",
    f"speculative-config: {{method: ngram, num_speculative_tokens: {NINES}}}": "more than 64 bits",
    "speculative-config: {method: ngram, num_speculative_tokens: 1000000000}": "less than or equal to 1024",
    f'speculative-config: \'{{"method": "ngram", "num_speculative_tokens": {NINES * 13}}}\'': "no JSON",
    SPEC.format(f"num_speculative_tokens_per_batch_size: [[1,{NINES},4]]"): "more than 64 bits",
    SPEC.format("num_speculative_tokens_per_batch_size: [[1,9999999999,4]]"): "no whole number",
    SPEC.format(f"num_speculative_tokens_per_batch_size: [[1,'{'9' * 5000}',4]]"): "no whole number",
    "max-num-seqs: 190:20:30": "is 685230",
    "compilation-config: {max_cudagraph_capture_size: 1000000000000}": "from 1 to 65536",
    # keys that are no names
    "1: 2": ":1: '1' is no name .* reads it as int",
    "yes: 1": "reads it as bool",
    "null: 1": "reads it as null",
    ".nan: 1": "reads it as float",
    "2026-01-01: 1": "reads it as timestamp",
    "two words: 1": "no name of a vLLM option",
    "[1, 2]: 3": "unhashable key",
    "max-num-seqs: 4\n\ufeffb: 3": ":2: .* no name",
    # what is no number
    "gpu-memory-utilization: .nan": "is nan; give a share",
    "gpu-memory-utilization: .inf": "is inf; give a share",
    "max-model-len: -.inf": "is -inf; give a whole number",
    "any-option: [1, {a: .nan}]": "holds nan",
    SPEC.format("num_speculative_tokens_per_batch_size: [[1,.nan,4]]"): "holds nan",
    'speculative-config: \'{"method": "ngram", "num_speculative_tokens": NaN}\'': "holds nan",
    # truth values as numbers
    "max-num-seqs: true": "is True; give a whole number",
    "compilation-config: {cudagraph_capture_sizes: [true]}": "list of whole numbers",
    "speculative-config: {method: suffix, suffix_decoding_max_cached_requests: true}": "valid integer",
    "speculative-config: {method: suffix, suffix_decoding_min_token_prob: true}": "valid number",
    "async-scheduling: maybe": "give true or false",
    # wrong kinds
    "max-num-seqs: [1]": r"is \[1\]; give a whole number",
    "max-num-seqs: 0": "is 0; give",
    "max-num-seqs: 16k": "is '16k'; give",
    "block-size: 0": "is 0; give",
    "compilation-config: {cudagraph_capture_sizes: 3}": "list of whole numbers",
    "a: 2026-01-01": "reads as a date; put it in quotes",
    "a: !!binary aGVsbG8=": "reads as a bytes",
    "a: !!set {x, y}": "reads as a set",
    'a: "\\ud800"': "half of a character",
    # twice, at any depth
    "a: 1\na: 2": ":2: a stands here and in line 1",
    "a:\n  b:\n    c: 1\n    c: 2": ":4: c stands here and in line 3",
    "a: [{b: 1, b: 2}]": "b stands here",
    "<<: {a: 1}\n<<: {b: 1}": "<< stands here",
    # YAML's own faults
    "a:\n\t- b": ":2: .*cannot start any token",
    "a: *x": "undefined alias",
    "<<: 3": "for merging",
    "a: &a [*a]": "holds itself",
    "- a\n- b": "mapping of vLLM options",
    "hello": "mapping of vLLM options",
    "a: 1\n---\nb: 2": ":2: .*another document",
    "a: \x00": "no valid YAML",
    "a: !!python/object:os.system x": "no valid YAML",
    "a: !!int foo": ":1: .* no int",
    "a: !!int ''": ":1: .* no int",
    "a: !!bool maybe": ":1: .* no bool",
    "a: !!timestamp foo": ":1: .* no timestamp",
    "a: 2026-02-30": ":1: .* no timestamp",
    "a: " + "[" * 3000 + "]" * 3000: "nested too deeply",
}
TAKEN = {
    "": {},
    "# only a remark": {},
    "\ufeffmax-num-seqs: 4": {"max-num-seqs": 4},
    "max-num-seqs: 4\r\nblock-size: 16\r\n": {"max-num-seqs": 4, "block-size": 16},
    "<<: {max-num-seqs: 3}": {"max-num-seqs": 3},
    "a: &x 5\nb: *x": {"a": 5, "b": 5},
    "max-model-len: 16k": {"max-model-len": "16k"},
    "max-model-len: auto": {"max-model-len": "auto"},
    "gpu-memory-utilization: '0.5'": {"gpu-memory-utilization": "0.5"},
    "hf-overrides: {id2label: {0: a, 1: b}}": {"hf-overrides": {"id2label": {0: "a", 1: "b"}}},
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_it_is_refused_in_one_short_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=REFUSED[text]) as caught:
        load_profile(path)
    said = str(caught.value).replace(str(tmp_path), "")
    assert said.startswith("/hostile.yaml")
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize("text", TAKEN, ids=lambda text: text[:40])
def test_it_is_a_profile_that_the_simulator_starts_with(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(text.encode("utf-8"))
    profile = load_profile(path)
    assert dict(profile.settings) == TAKEN[text]
    assert launch(profile, LaunchOptions(noise="off")).core.config.max_num_seqs >= 1
    parse_profile(dump_profile(profile), name="again", label="again.yaml")


@pytest.mark.parametrize("data", [b"a: \xff\xfe\n", "a: 4\n".encode("utf-16"), "a: ä\n".encode("latin-1")])
def test_what_is_not_utf8_is_said(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bytes.yaml"
    path.write_bytes(data)
    for read in (load_profile, read_yaml):
        with pytest.raises(UsageError, match="is not UTF-8 text; save it as UTF-8"):
            read(path)


def test_merged_fields_count_as_written_ones() -> None:
    text = "x-common: &a {num_speculative_tokens: 4}\nspeculative-config:\n  <<: *a\n  method: ngram\n"
    assert parse_profile(text, name="p", label="p.yaml").method == "ngram"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((4, 4), ("4", 4), ("16k", 16_000), ("16K", 16_384), ("25.6k", 25_600), ("2M", 2 << 20), ("auto", AUTO)),
        *((True, None), (4.0, None), ("1.5K", None), ("k", None), ("9" * 40, None), (None, None)),
    ],
)
def test_numbers_as_vllm_reads_them(value: object, number: int | None) -> None:
    assert whole(value) == number


def test_an_underscore_is_a_dash_for_the_simulator_too() -> None:
    profile = parse_profile("max_num_seqs: 7\nmax_model_len: 4k\n", name="p", label="p.yaml")
    config = launch(profile, LaunchOptions(noise="off")).core.config
    assert (config.max_num_seqs, config.max_model_len) == (7, 4000)
