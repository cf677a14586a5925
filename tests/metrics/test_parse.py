"""Reading `/metrics` bodies."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.metrics import names
from loadgen.metrics.parse import Snapshot, parse

DRAFTS = "vllm:spec_decode_num_drafts_total"


def all_metrics_captures() -> list[Path]:
    return sorted((Path(__file__).parent.parent / "data" / "captures").glob("*/*metrics*.txt"))


@pytest.mark.parametrize("path", all_metrics_captures(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_capture_reads_as_prometheus_client_reads_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    theirs = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    read = parse(text)
    ours = {
        (name, frozenset(sample.labels.items())): sample.value
        for name, found in read.samples.items()
        for sample in found
    }
    assert ours == theirs
    assert len(ours) > 400
    assert read.available
    assert read.warnings == ()


@pytest.mark.parametrize("path", all_metrics_captures(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_name_of_a_capture_is_known(path: Path) -> None:
    major, minor = path.parent.name.split("-")[1].split(".")[:2]
    known = names.known_sample_names((int(major), int(minor)))
    seen = {name for name in parse(path.read_bytes()).samples if name.startswith("vllm:")}
    assert {name for name in seen if not name.endswith("_created")} <= known


def test_c63_exact_names_only(snapshot: Callable[..., Snapshot]) -> None:
    read = snapshot(
        "vllm:spec_decode_num_accepted_tokens_total 690",
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 380',
    )
    assert [s.value for s in read.find(*names.ACCEPTED_TOKENS) or ()] == [690]
    assert [s.value for s in read.find(*names.ACCEPTED_PER_POSITION) or ()] == [380]


def test_c65_labels_with_quotes_braces_commas_and_time_stamps() -> None:
    body = (
        f'{DRAFTS}{{engine="0",model_name="a \\"b\\", c{{d}}\\\\e"}} 7 1795100000000\n'
        f'{DRAFTS}{{engine="1",model_name="m"}}11\n'
    )
    first, second = parse(body).samples[DRAFTS]
    assert first.value == 7
    assert first.labels == {"engine": "0", "model_name": 'a "b", c{d}\\e'}
    assert second.value == 11


def test_c66_samples_are_found_by_the_name_that_stands_in_the_body() -> None:
    read = parse("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total 12.0\n")
    assert read.find("vllm:prompt_tokens_total") is not None
    assert read.find("vllm:prompt_tokens") is None


@pytest.mark.parametrize(
    "content_type", ["text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0", None]
)
def test_c67_text_and_openmetrics_give_the_same_value(content_type: str | None) -> None:
    body = '# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{engine="0"} 12.0 # {trace_id="ab"} 1.0\n# EOF\n'
    read = parse(body, content_type)
    assert [s.value for s in read.samples["vllm:prompt_tokens_total"]] == [12.0]
    assert read.warnings == ()


def test_c67_openmetrics_without_its_end_mark_is_cut_off() -> None:
    (warning,) = parse("vllm:prompt_tokens_total 12.0\n", "application/openmetrics-text").warnings
    assert "end mark" in warning


def test_c69_nan_and_infinities_are_read_as_such() -> None:
    read = parse("a NaN\nb +Inf\nc -Inf\nd 1e3\n")
    assert math.isnan(read.samples["a"][0].value)
    assert [read.samples[name][0].value for name in "bcd"] == [math.inf, -math.inf, 1000.0]


def test_c70_an_absent_name_is_none_and_an_old_name_is_found() -> None:
    old = parse('vllm:gpu_cache_usage_perc{engine="0"} 0.5\n')
    assert [s.value for s in old.find(*names.KV_CACHE_USAGE) or ()] == [0.5]
    assert old.find(*names.RUNNING) is None


def test_c71_an_empty_body_is_a_warning_not_an_error() -> None:
    read = parse(b"")
    assert not read.available
    assert "not available" in read.warnings[0]


def test_bad_lines_are_counted_and_left_out() -> None:
    read = parse('ok 1\nno_value\nbad{x="1} 2\nunder 1_000\nlabel{x=1} 2\n')
    assert list(read.samples) == ["ok"]
    assert "4 unreadable" in read.warnings[0]
    assert "line 2" in read.warnings[0]


def test_bom_crlf_and_tabs_do_no_harm() -> None:
    read = parse(b'\xef\xbb\xbfa 1\r\nb{x="1"}\t2\r\n')
    assert [read.samples[name][0].value for name in "ab"] == [1, 2]


def test_only_reads_the_wanted_names() -> None:
    read = parse("vllm:num_requests_running 3\nvllm:num_requests_running_old 4\nother 1\n", only=names.GAUGES)
    assert list(read.samples) == ["vllm:num_requests_running"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_label_value_survives_the_round_trip(value: str) -> None:
    registry = CollectorRegistry()
    Counter("drafts", "x", ["model_name"], registry=registry).labels(value).inc(7)
    read = parse(generate_latest(registry))
    assert read.samples["drafts_total"][0].labels == {"model_name": value}
    assert read.samples["drafts_total"][0].value == 7


@given(st.binary(max_size=300))
def test_no_body_raises(body: bytes) -> None:
    read = parse(body)
    assert read.body == body
