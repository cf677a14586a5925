"""The dashboards as files: fresh, with metrics that exist, free of every fault that our own lint knows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.commands.check_files import lint_files, own_files
from tools.dashboards.__main__ import texts
from tools.dashboards.names import captured_names, unknown_names
from tools.dashboards.parts import UID

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "dashboards" / "grafana"


def test_the_json_is_what_the_code_makes() -> None:
    assert {path.name: path.read_text() for path in GRAFANA.glob("*.json")} == texts()


def test_a_stale_file_and_an_unknown_metric_are_told(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dashboards", tmp_path / "dashboards")
    board = tmp_path / "dashboards" / "grafana" / "break-even.json"
    board.write_text(board.read_text().replace("loadgen_ttft_p50_seconds", "loadgen_ttft_p51_seconds"))
    (fault,) = unknown_names(tmp_path / "dashboards")
    assert "loadgen_ttft_p51_seconds" in fault
    alerts = tmp_path / "dashboards" / "rules" / "alerts.yml"
    alerts.write_text(alerts.read_text().replace("process_start_time_seconds", "process_began_seconds"))
    assert len(unknown_names(tmp_path / "dashboards")) == 2


def test_c101_every_metric_was_seen_on_vllm_or_is_ours() -> None:
    assert unknown_names() == []
    assert "vllm:kv_cache_usage_perc" in captured_names()
    assert "vllm:gpu_cache_usage_perc" not in captured_names()


def test_our_own_stack_has_no_finding() -> None:
    files = own_files(ROOT)
    assert files.prometheus
    assert len(files.dashboards) == 3
    assert len(files.provisioning) == 1
    assert lint_files(files) == []


def test_the_command_says_so_too() -> None:
    words = ["check", "--compose", "docker-compose.yml", "--prometheus", "dashboards/prometheus.yml", "--json"]
    words += [word for path in sorted(GRAFANA.glob("*.json")) for word in ("--dashboard", str(path))]
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"findings": [], "notes": []}), done.stderr


def test_c97_one_uid_everywhere() -> None:
    uids = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if "datasource" in value:
                uids.add(value["datasource"]["uid"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for path in GRAFANA.glob("*.json"):
        board = json.loads(path.read_text())
        assert board["id"] is None
        walk(board)
    assert uids == {UID}


def test_promtool_agrees_and_the_alerts_fire_when_they_should() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here; `apt-get install prometheus`")
    for words in (
        ["check", "config", "dashboards/prometheus.yml"],
        ["test", "rules", "tests/dashboards/alerts.test.yml"],
    ):
        done = subprocess.run(["promtool", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
