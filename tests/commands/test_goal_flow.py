"""`--objective` and `--slo` from the command line through schedule, answer and verify, on real sockets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from loadgen.analysis.capacity_model import Slo
from loadgen.analysis.goal import Goal, goal_of
from loadgen.cli import app
from loadgen.commands.answer_run import AnswerRequest, answer
from loadgen.commands.conclude import find_verification
from loadgen.commands.goal import wanted_goal
from loadgen.commands.schedule_show import as_data, as_text, find
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.commands.verify_run import verify_command
from loadgen.commands.verify_setup import VerifyRequest
from loadgen.engines.choose import EngineRequest
from loadgen.errors import UsageError
from loadgen.report.summary import json_schema
from loadgen.store.folder import RunFolder, find_run

EASY = ["tpot_p50=10s"]
"""A median needs six requests to be bounded, and no token takes ten seconds."""


def test_a_goal_is_read_from_its_two_options() -> None:
    assert wanted_goal(None, None) is None
    assert wanted_goal("tpot", None) == Goal("tpot")
    assert wanted_goal(None, ["ttft_p99=500ms"]) == Goal("throughput", (Slo("ttft", 0.99, 0.5),))
    with pytest.raises(UsageError, match="the known ones are throughput, tpot"):
        wanted_goal("speed", None)
    with pytest.raises(UsageError, match="is no objective"):
        wanted_goal(None, ["fast"])


def test_an_answer_within_limits_says_so_everywhere(in_process: Any, tmp_path: Path) -> None:
    asked = SweepRequest(
        workload="code-edit",
        levels="2",
        k="4",
        repeats=1,
        window_s=0.6,
        max_tokens=16,
        quick=True,
        schedule_costs=False,
    )
    answer(AnswerRequest(asked, EngineRequest(name="simulator"), 0.1, wanted_goal(None, EASY)), tmp_path, as_json=True)
    folder = find_run("latest", tmp_path)
    assert goal_of(folder.manifest()).slos == (Slo("tpot", 0.5, 10.0),)
    summary = json.loads((folder.path / "summary.json").read_text())
    jsonschema.validate(summary, json_schema())
    assert "within tpot_p50 10 s" in summary["answer"]
    assert summary["ladders"][0]["limits_s"] == {"tpot_p50": 10.0}
    assert summary["ladders"][0]["no_setting_keeps_limits_at"] == []
    assert {one["verdict"] for one in summary["verification"]["limits"]} == {"met"}
    verification = find_verification(folder)
    assert verification is not None
    assert verification.claim.slos == (Slo("tpot", 0.5, 10.0),)
    assert as_data(find(folder))["slos"] == {"tpot_p50": 10.0}


def test_limits_that_nothing_keeps_are_said_by_schedule_and_kept_by_verify(
    in_process: Any, answered_run: Callable[..., RunFolder], tmp_path: Path
) -> None:
    folder = answered_run(tmp_path)
    before = (folder.path / "manifest.json").read_bytes()
    hard = wanted_goal(None, ["tpot_p50=1us"])
    told = as_text(find(folder, hard))
    assert "No setting surely keeps tpot_p50 0.001 ms at any tested load" in told
    assert (folder.path / "manifest.json").read_bytes() == before, "schedule writes nothing"

    verify_command(folder, VerifyRequest(margin=0.1, goal=hard), resumed=False, as_json=True)

    assert goal_of(folder.manifest()) == hard
    assert "no setting surely keeps that at 1" in json.loads((folder.path / "summary.json").read_text())["answer"]
    shown = CliRunner().invoke(app, ["schedule", str(folder.path), "--objective", "tpot"])
    assert shown.exit_code == 0
    assert ", by tpot" in shown.output
