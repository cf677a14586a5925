"""From a ladder of K to the verdict on real sockets, and what each command reads from the run then."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from loadgen import cli
from loadgen.analysis.verify_model import Verdict
from loadgen.cli import app
from loadgen.commands import sweep_run
from loadgen.commands.answer_run import AnswerRequest, answer
from loadgen.commands.conclude import find_findings, find_verification
from loadgen.commands.goal import wanted_goal
from loadgen.commands.schedule_show import as_data, as_text, exit_code, find
from loadgen.commands.sweep_setup import SweepRequest, make_experiment, make_manifest
from loadgen.commands.verify_run import exit_code as verdict_code
from loadgen.commands.verify_setup import VerifyRequest, prepare
from loadgen.engines.choose import EngineRequest
from loadgen.errors import ExitCode, NoVerdictError, UsageError
from loadgen.report.summary import json_schema
from loadgen.store.folder import RunFolder, create_run, find_run
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.lengths import ratio_counter

ASKED = SweepRequest(
    workload="code-edit", levels="1", k="4", repeats=1, window_s=0.2, max_tokens=24, quick=True, schedule_costs=False
)


@pytest.fixture
def answered(in_process: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[RunFolder, ExitCode, str]:
    code = answer(AnswerRequest(ASKED, EngineRequest(name="simulator")), tmp_path, as_json=False)
    return find_run("latest", tmp_path), code, capsys.readouterr().out


def test_an_answer_goes_from_the_ladder_to_the_verdict(
    answered: tuple[RunFolder, ExitCode, str], in_process: Any
) -> None:
    folder, code, shown = answered
    # the servers of one step start together, in either order
    assert [sorted(in_process.started[i : i + 2]) for i in (0, 2)] == [["baseline", "ngram-k4"]] * 2
    verification = find_verification(folder)
    assert verification is not None
    assert code in (ExitCode.ANSWER, ExitCode.NO_VERDICT)
    assert "Measured again" in shown
    # Fresh prompts: another seed, so that no prompt of the run comes back.
    own = RunFolder(folder.path / "verify")
    assert own.manifest().seed == verification.seed != folder.manifest().seed
    assert {cell.prompts_sha256 for cell in own.cells()}.isdisjoint(cell.prompts_sha256 for cell in folder.cells())
    assert {path.name for path in (folder.path / "profiles").iterdir()} == {
        "baseline.yaml",
        "ngram.yaml",
        "ngram-k4.yaml",
    }

    summary = json.loads((folder.path / "summary.json").read_text())
    jsonschema.validate(summary, json_schema())
    assert summary["verification"]["verdict"] == verification.verdict.value
    assert summary["ladders"][0]["arms"] == {"ngram-k4": {"of": "ngram", "k": 4, "constant_schedule": False}}
    for report in ("report.md", "report.html"):
        assert "Measured again" in (folder.path / report).read_text()

    found = find(folder)
    assert exit_code([found]) is ExitCode.ANSWER
    assert as_data(found)["verification"] == verification.verdict.value
    assert as_data(found)["static_k"] == 4
    assert 'speculative-config:\n  method: "ngram"\n  num_speculative_tokens: 4' in as_text(found)
    with pytest.raises(UsageError, match="the known ones are throughput, tpot"):
        wanted_goal("speed", None)

    again = prepare(folder, VerifyRequest(margin=0.05, repeats=4), as_json=False)
    assert (again.margin, again.job.experiment.plan.repeats) == (0.05, 4)
    assert again.job.experiment.plan.seed not in (verification.seed, folder.manifest().seed)
    assert (folder.path / "verify-1" / "verification.json").is_file()
    # The last whole one stands until the new one is whole (tests/commands/test_last_verification.py).
    assert find_findings(folder).verification is not None


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0])
def test_a_margin_is_a_share(margin: float, in_process: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--margin"):
        answer(AnswerRequest(ASKED, EngineRequest(name="simulator"), margin), tmp_path, as_json=True)


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(Verdict.HOLDS, 0), (Verdict.FAILS, 1), (Verdict.OPEN, 3)],
)
def test_a_verdict_is_an_exit_code(verdict: Verdict, code: int) -> None:
    assert verdict_code(verdict) == code


@pytest.mark.parametrize("command", ["schedule", "verify", "answer", "sweep", "lossless"])
def test_each_help_ends_with_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    told = " ".join(shown.output.split())
    assert f"Example: loadgen {command}" in told
    assert "Exit codes: 0 " in told
    assert all(code in told for code in ("2 wrong use", "3 "))


@pytest.mark.parametrize(
    ("words", "says"), [(["analyse", "x"], True), (["analyse", "--json"], False), (["runs"], False)]
)
def test_three_is_told_in_words(
    words: list[str], says: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make: *** Error 3` stood alone below a normal "inconclusive"."""

    def ends() -> None:
        raise SystemExit(3)

    monkeypatch.setattr(cli, "app", ends)
    monkeypatch.setattr("sys.argv", ["loadgen", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert ("exit code 3: measured, and no verdict yet" in capsys.readouterr().err) is says


def test_a_run_that_advises_nothing_cannot_be_verified(in_process: Any, tmp_path: Path) -> None:
    folder = create_run("empty", tmp_path)
    engine = EngineRequest(name="simulator")
    experiment = make_experiment(ASKED, in_process)
    manifest = make_manifest(folder.run_id, experiment, ASKED, in_process, "for a test")
    folder.write_manifest(replace(manifest, settings=manifest.settings | {"engine": engine.stored()}))
    with pytest.raises(NoVerdictError, match="advises nothing that could be verified yet"):
        prepare(folder, VerifyRequest(), as_json=False)
    assert not (folder.path / "verify").exists()
    assert "no schedule yet" in as_text(find(folder))
    assert exit_code([find(folder)]) is ExitCode.NO_VERDICT


@pytest.mark.parametrize(
    ("order", "asked", "expected"),
    [
        ("together", VerifyRequest(), "together"),
        ("blocks", VerifyRequest(), "blocks"),
        ("together", VerifyRequest(engine="process"), "blocks"),
    ],
)
def test_a_verification_repeats_the_runs_order_and_drawn_lengths(
    order: str, asked: VerifyRequest, expected: str, in_process: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that fitted beside each other fit again; outputs of another length would be another question."""
    drawn = replace(ASKED, order=order, output_lengths="uniform:8-12", max_tokens=None)
    sweep_run.sweep(drawn, EngineRequest(name="simulator"), tmp_path, as_json=True)
    monkeypatch.setattr(in_process, "can_run_together", False)

    experiment = prepare(find_run("latest", tmp_path), asked, as_json=True).job.experiment

    assert experiment.plan.order == expected
    wanted = PromptRequest(seed=1, level=1, repeat=0, count=60)
    prompts = experiment.workloads["code-edit"].prompts(wanted, ratio_counter(4.0))
    assert {8, 12} <= {prompt.max_tokens for prompt in prompts} <= {8, 9, 10, 11, 12}


def test_what_is_printed_has_as_many_synthetic_rates_as_k() -> None:
    """vLLM refuses another number of them; the profile of this run has five, for K = 5."""
    example = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"

    config = find(RunFolder(example)).config

    assert config is not None
    assert (config["num_speculative_tokens"], config["synthetic_acceptance_rates"]) == (3, [0.7, 0.49, 0.343])
