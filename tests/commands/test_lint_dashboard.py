"""Each fault of a dashboard (cases.md, part F), planted one by one in a good one."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.commands.lint_dashboard import lint_dashboard
from loadgen.commands.lint_promql import aggregations, metric_names, ranges
from loadgen.errors import UsageError

SOURCE = {"type": "prometheus", "uid": "prom"}
EXPR = 'sum by (instance) (rate(vllm:generation_tokens_total{model_name=~"$model"}[$__rate_interval]))'


def board(expr: str = EXPR, source: object = SOURCE, **more: object) -> dict[str, Any]:
    return {
        "id": None,
        "uid": "mine",
        "panels": [
            {
                "id": 1,
                "type": "timeseries",
                "title": "Tokens",
                "datasource": source,
                "targets": [{"datasource": source, "expr": expr}],
            }
        ],
        "templating": {
            "list": [
                {
                    "name": "model",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": "label_values(vllm:num_requests_running, model_name)",
                    "refresh": 1,
                }
            ]
        },
        "annotations": {"list": [{"name": "Built in", "datasource": {"type": "grafana", "uid": "-- Grafana --"}}]},
        **more,
    }


def codes(folder: Path, found: dict[str, Any]) -> set[str]:
    path = folder / "board.json"
    path.write_text(json.dumps(found))
    return {finding.code for finding in lint_dashboard(path, {"prom"})}


def test_a_good_dashboard_has_no_finding(tmp_path: Path) -> None:
    assert codes(tmp_path, board()) == set()
    assert codes(tmp_path, {"dashboard": board(), "meta": {}}) == set()  # as Grafana's API gives it


@pytest.mark.parametrize(
    "source", [{"type": "prometheus", "uid": "${DS_PROMETHEUS}"}, {"uid": "PBFA97CFB590B2093"}, "Prom"]
)
def test_c97_uid_that_matches_nothing(tmp_path: Path, source: object) -> None:
    assert codes(tmp_path, board(source=source)) == {"datasource-uid"}


def test_c97_a_source_variable_is_fine(tmp_path: Path) -> None:
    found = board(source={"uid": "${source}"})
    found["templating"]["list"].append({"name": "source", "type": "datasource", "query": "prometheus"})
    assert codes(tmp_path, found) == set()


def test_c97_without_provisioning_a_uid_may_be_right(tmp_path: Path) -> None:
    path = tmp_path / "board.json"
    path.write_text(json.dumps(board()))
    assert {finding.is_error for finding in lint_dashboard(path, None)} == {False}


def test_c97_inputs_and_id(tmp_path: Path) -> None:
    assert codes(tmp_path, board(__inputs=[{"name": "DS_PROMETHEUS"}])) == {"inputs"}
    assert codes(tmp_path, board(id=7)) == {"dashboard-id"}


def test_c97_variables_and_annotations_name_it_too(tmp_path: Path) -> None:
    found = board()
    found["annotations"]["list"].append({"name": "A", "datasource": {"uid": "gone"}, "expr": "up"})
    assert codes(tmp_path, found) == {"datasource-uid"}
    found = board()
    found["templating"]["list"][0]["datasource"] = {"uid": "gone"}
    assert codes(tmp_path, found) == {"datasource-uid"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"query": "label_values(model_name)"}, "variable-query"),
        ({"query": {"query": "label_values(model_name)", "refId": "A"}}, "variable-query"),
        ({"query": "label_values(vllm:gpu_cache_usage_perc, model_name)"}, "unknown-metric"),
        ({"datasource": None}, "variable-datasource"),
        ({"refresh": 0}, "variable-refresh"),
    ],
)
def test_c98_variable(tmp_path: Path, change: dict[str, object], code: str) -> None:
    found = board()
    found["templating"]["list"][0].update(change)
    assert codes(tmp_path, found) == {code}


@pytest.mark.parametrize(
    ("span", "code"),
    [("$__interval", "interval-in-rate"), ("${__interval}", "interval-in-rate"), ("1m", "fixed-range")],
)
@pytest.mark.parametrize("function", ["rate", "irate", "increase"])
def test_c99_range(tmp_path: Path, span: str, code: str, function: str) -> None:
    assert codes(tmp_path, board(f"sum({function}(vllm:generation_tokens_total[{span}]))")) == {code}


@pytest.mark.parametrize(
    "name",
    [
        "vllm:gpu_cache_usage_perc",
        "vllm:time_per_output_token_seconds_sum",
        "vllm:spec_decode_draft_acceptance_rate",
        "vllm:generation_tokens",
        "vllm:e2e_request_latency_seconds",
        "loadgen_no_such_thing",
        "vllm_generation_tokens_total",
    ],
)
def test_c101_metric_that_is_not_there(tmp_path: Path, name: str) -> None:
    assert codes(tmp_path, board(f"max({name})")) == {"unknown-metric"}


def test_c101_collapsed_rows_are_looked_into(tmp_path: Path) -> None:
    found = board()
    inner = board("vllm:gpu_cache_usage_perc")["panels"]
    found["panels"].append({"type": "row", "title": "More", "panels": inner})
    assert codes(tmp_path, found) == {"unknown-metric"}


@pytest.mark.parametrize(
    ("expr", "code"),
    [
        ("sum(vllm:kv_cache_usage_perc)", "summed-ratio"),
        ('sum by (model_name) (vllm:kv_cache_usage_perc{a="b"})', "summed-ratio"),
        ("sum(loadgen_acceptance_ratio)", "summed-ratio"),
        ("sum(rate(vllm:prefix_cache_hits_total[5m]) / rate(vllm:prefix_cache_queries_total[5m]))", "summed-ratio"),
        ("avg(histogram_quantile(0.9, rate(vllm:e2e_request_latency_seconds_bucket[5m])))", "averaged-quantile"),
        ("sum(histogram_quantile(0.9, rate(vllm:e2e_request_latency_seconds_bucket[5m])))", "averaged-quantile"),
        ('avg(go_gc_duration_seconds{quantile="0.99"})', "averaged-quantile"),
        (
            "histogram_quantile(0.9, sum by (instance) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))",
            "quantile-without-le",
        ),
    ],
)
def test_ratios_and_quantiles(tmp_path: Path, expr: str, code: str) -> None:
    assert codes(tmp_path, board(expr.replace("5m", "$__rate_interval"))) == {code}


@pytest.mark.parametrize("text", ["{", "[]"])
def test_no_dashboard(tmp_path: Path, text: str) -> None:
    path = tmp_path / "board.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        list(lint_dashboard(path, set()))


def test_names_in_promql() -> None:
    expr = """
      sum by (le, x) (rate(a:b_bucket{c="d",e=~"$f"}[$__rate_interval])) # g
      / on (instance) group_left (y) (up > bool 0) and h offset 5m or i[5m:1m] unless j @ start() == Inf
      + label_replace(k, "l", "$1", "m", "(.*)") ${n} 3e5 0x1F 7d
    """
    assert metric_names(expr) == {"a:b_bucket", "up", "h", "i", "j", "k"}


def test_ranges_and_aggregations_in_promql() -> None:
    assert list(ranges('rate(a{b="[9m]"}[5m]) + increase(c[$__interval])')) == [
        ("rate", "5m"),
        ("increase", "$__interval"),
    ]
    found = list(aggregations("sum(a / b) by (c) / avg without (d) (max by (e, f) (g))"))
    assert [(one.operator, one.labels, one.inside) for one in found] == [
        ("sum", ("c",), "a / b"),
        ("avg", None, "max by (e, f) (g)"),
        ("max", ("e", "f"), "g"),
    ]
