"""Each fault of a prometheus.yml and of provisioning (cases.md, parts E and F), planted one by one."""

from pathlib import Path

import pytest

from loadgen.commands.lint_compose_file import compose_ports, read_compose
from loadgen.commands.lint_dashboard import lint_provisioning
from loadgen.commands.lint_prometheus import duration_s, lint_prometheus

GOOD = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
rule_files: ["*.rules.yml"]
scrape_configs:
  - job_name: prometheus
    static_configs: [{targets: ["localhost:9090"]}]
  - job_name: vllm
    static_configs: [{targets: ["vllm:8000"]}]
"""
COMPOSE = """
services:
  vllm: {image: "vllm/vllm-openai:v0.32.0", ports: ["127.0.0.1:18000:8000"]}
"""
SOURCE = """
apiVersion: 1
datasources:
  - {name: P, type: prometheus, uid: prom, url: "http://prometheus:9090", jsonData: {timeInterval: 1s}}
"""


def codes(folder: Path, text: str, rules: str = "groups: []", *, compose: bool = True) -> set[str]:
    (folder / "prometheus.yml").write_text(text)
    (folder / "a.rules.yml").write_text(rules)
    (folder / "compose.yml").write_text(COMPOSE)
    services = compose_ports(read_compose(folder / "compose.yml")) if compose else ()
    return {finding.code for finding in lint_prometheus(folder / "prometheus.yml", services).findings}


def planted(folder: Path, before: str, after: str) -> set[str]:
    assert GOOD.count(before) == 1, before
    return codes(folder, GOOD.replace(before, after))


def test_a_good_file_has_no_finding(tmp_path: Path) -> None:
    assert codes(tmp_path, GOOD) == set()


@pytest.mark.parametrize("target", ["localhost:18000", "127.0.0.1:8000", "0.0.0.0:8000"])
def test_c94_localhost_target(tmp_path: Path, target: str) -> None:
    assert planted(tmp_path, "vllm:8000", target) == {"localhost-target"}


def test_c94_host_port_and_unknown_service(tmp_path: Path) -> None:
    assert planted(tmp_path, "vllm:8000", "vllm:18000") == {"host-port"}
    assert planted(tmp_path, "vllm:8000", "llm:8000") == {"unknown-service"}
    assert codes(tmp_path, GOOD.replace("vllm:8000", "llm:8000"), compose=False) == set()
    assert planted(tmp_path, "vllm:8000", "host.docker.internal:8000") == set()


@pytest.mark.parametrize("interval", ["15s", "1m", "1m30s"])
def test_c100_slow_scrape(tmp_path: Path, interval: str) -> None:
    assert planted(tmp_path, "scrape_interval: 1s", f"scrape_interval: {interval}") == {"slow-scrape"}


def test_c100_the_default_interval_is_slow(tmp_path: Path) -> None:
    assert planted(tmp_path, "global: {scrape_interval: 1s, scrape_timeout: 1s}", "global: {}") == {"slow-scrape"}


def test_c100_timeout_above_interval(tmp_path: Path) -> None:
    assert planted(tmp_path, "scrape_timeout: 1s", "scrape_timeout: 10s") == {"scrape-timeout"}


def test_c100_a_job_of_its_own_pace(tmp_path: Path) -> None:
    job = "job_name: vllm\n    scrape_interval: 30s"
    assert planted(tmp_path, "job_name: vllm", job) == {"slow-scrape"}


@pytest.mark.parametrize(
    ("expr", "code"),
    [
        ("vllm:gpu_cache_usage_perc > 0.9", "unknown-metric"),
        ("sum(vllm:kv_cache_usage_perc) > 0.9", "summed-ratio"),
        ("avg(histogram_quantile(0.9, rate(vllm:e2e_request_latency_seconds_bucket[1m])))", "averaged-quantile"),
    ],
)
def test_c101_rules_are_read(tmp_path: Path, expr: str, code: str) -> None:
    rules = f"groups: [{{name: g, rules: [{{alert: A, expr: '{expr}'}}]}}]"
    assert codes(tmp_path, GOOD, rules) == {code}


def test_recorded_names_are_known(tmp_path: Path) -> None:
    rules = """
groups:
  - name: g
    rules:
      - {record: "vllm:acceptance", expr: "rate(vllm:spec_decode_num_drafts_total[1m])"}
      - {alert: A, expr: "vllm:acceptance > 1"}
"""
    assert codes(tmp_path, GOOD, rules) == set()


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (" uid: prom,", "", "datasource-uid"),
        ("//prometheus:9090", "//localhost:9090", "localhost-target"),
        ("timeInterval: 1s", "timeInterval: 15s", "time-interval"),
        (", jsonData: {timeInterval: 1s}", "", "time-interval"),
    ],
)
def test_c97_c99_data_source(tmp_path: Path, before: str, after: str, code: str) -> None:
    path = tmp_path / "source.yaml"
    path.write_text(SOURCE)
    assert lint_provisioning(path, "1s") == ([], {"prom"})
    assert SOURCE.count(before) == 1
    path.write_text(SOURCE.replace(before, after))
    assert [finding.code for finding in lint_provisioning(path, "1s")[0]] == [code]


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1), ("1m30s", 90), ("500ms", 0.5), ("1", None), ("x", None)])
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds
