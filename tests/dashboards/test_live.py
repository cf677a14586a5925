"""Every panel on real parts: Prometheus scrapes two simulated servers and the exporter while a sweep runs."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadgen.commands.replay_write import Series, remote_write
from tools.dashboards.ask import PanelQuery, Prometheus, answers, fill, panel_queries, unanswered, values
from tools.dashboards.stage import LOADGEN, Stage, stage

pytestmark = pytest.mark.stack

ROOT = Path(__file__).resolve().parents[2]
BOARDS = sorted((ROOT / "dashboards" / "grafana").glob("*.json"))


@dataclass(frozen=True)
class Filmed:
    stage: Stage
    began: float
    ended: float
    run_ids: tuple[str, ...]


@pytest.fixture(scope="module")
def filmed(runs: Path) -> Iterator[Filmed]:
    if shutil.which("prometheus") is None:
        pytest.skip("no Prometheus here; `apt-get install prometheus`")
    with stage(runs.parent, runs) as up:
        began = time.time()
        sweep = up.sweep("--workload", "code-edit", "--levels", "1,8", "--repeats", "1", "--window", "2")
        # 3: cells on a busy machine carry no verdict; the panels show them all the same.
        assert sweep.wait(120) in (0, 3), (runs.parent / "sweep.log").read_text()
        time.sleep(2)  # two scrapes of the last state
        yield Filmed(up, began, time.time(), tuple(sorted(path.name for path in runs.iterdir())))


@pytest.mark.parametrize("query", list(panel_queries()), ids=str)
def test_every_query_returns_data(filmed: Filmed, query: PanelQuery) -> None:
    assert answers(Prometheus(filmed.stage.prometheus), query, filmed.run_ids, filmed.began, filmed.ended)


def test_a_panel_without_data_is_named(filmed: Filmed) -> None:
    week_ago = filmed.began - 14 * 86400
    empty = unanswered(filmed.stage.prometheus, filmed.run_ids, week_ago, week_ago + 10)
    assert empty == [str(query) for query in panel_queries()]


def test_variables_and_annotations_return_data(filmed: Filmed) -> None:
    for path in BOARDS:
        board = json.loads(path.read_text())
        for variable in board["templating"]["list"]:
            inner = variable["query"]["query"].removeprefix("label_values(").removesuffix(")")
            selector, _, label = inner.rpartition(", ")
            found = {
                row["metric"].get(label)
                for run in filmed.run_ids
                for row in filmed.stage.ask("query", query=fill(selector, run=run), time=filmed.ended)["result"]
            }
            assert found - {None}, variable["name"]
        for mark in board["annotations"]["list"]:
            answer = filmed.stage.ask("query", query=fill(mark["expr"], run=filmed.run_ids[-1]), time=filmed.ended)
            stamps = values(answer)
            assert stamps
            assert min(stamps) > 1e12  # milliseconds


def test_alerts_and_recording_rules_load_and_are_well(filmed: Filmed) -> None:
    groups = filmed.stage.ask("rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert {"SpeculationCostsAtThisLoad", "AcceptanceFellByAThird", "ServerRestarted"} < rules.keys()
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    assert [rule["name"] for rule in rules.values() if rule.get("state") == "firing"] == []


def test_a_finished_run_is_replayed(filmed: Filmed) -> None:
    run = filmed.run_ids[-1]
    words = ["replay", str(filmed.stage.runs / run), "--to", filmed.stage.prometheus]
    done = subprocess.run([*LOADGEN, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    began, ended = (int(found) / 1000 for found in re.findall(r"(?:from|to)=(\d{13})", done.stdout))
    assert abs(began - filmed.began) < 20
    times = {"start": began, "end": ended, "step": 1}
    # The same panel shows both: what Prometheus saw and what the folder kept.
    expr = 'sum by (instance) (rate(vllm:generation_tokens_total{job="JOB"}[5s]))'
    seen, replayed = (
        filmed.stage.ask("query_range", query=expr.replace("JOB", job), **times) for job in ("vllm", "replay")
    )
    assert {row["metric"]["instance"] for row in replayed["result"]} == {"baseline", "ngram"}
    assert max(values(replayed)) == pytest.approx(max(values(seen)), rel=0.6)
    state = filmed.stage.ask("query", query=f'loadgen_run_info{{run="{run}",job="replay"}}', time=ended)
    assert values(state) == [1.0]


def test_a_run_of_last_week_is_taken_too(filmed: Filmed) -> None:
    week_ago = int((filmed.began - 7 * 86400) * 1000)
    assert remote_write([Series("old", {"job": "replay"}, [(week_ago, 3.0)])], filmed.stage.prometheus) == 1
    assert values(filmed.stage.ask("query", query="old", time=week_ago / 1000 + 1)) == [3.0]


def test_every_target_is_up(filmed: Filmed) -> None:
    targets = filmed.stage.ask("targets")["activeTargets"]
    assert [target["lastError"] for target in targets] == [""] * 3


def test_the_sweep_was_seen_while_it_ran(filmed: Filmed) -> None:
    times = {"start": filmed.began, "end": filmed.ended, "step": 1}
    run = filmed.run_ids[-1]
    active = filmed.stage.ask("query_range", query=f'loadgen_run_active{{run="{run}"}}', **times)
    assert set(values(active)) == {0.0, 1.0}
    mine = f'{{run="{run}",job="loadgen"}}'
    levels = filmed.stage.ask("query_range", query=f"loadgen_current_concurrency{mine}", **times)
    assert set(values(levels)) <= {1.0, 8.0}
    measured = filmed.stage.ask("query", query=f"loadgen_run_cells_measured{mine}", time=filmed.ended)
    assert values(measured) == [4.0]
