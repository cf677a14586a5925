"""A body becomes the sweep that the same command line would be, or one sentence."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from loadgen.commands import sweep as sweep_command
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.engines.choose import EngineRequest
from loadgen.errors import ExitCode, LoadgenError
from loadgen.service.asked import prepare, read_body
from loadgen.service.model import SweepBody
from loadgen.service.settings import Settings

SETTINGS = Settings(runs=Path("runs"), servers=("http://127.0.0.1:8000",))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"profiles": ["server_profiles"]}, "no profile"),
        ({"against": "nothing"}, "no profile"),
        ({"workloads": ["prompts.jsonl"]}, "no workload"),
        ({"engine": "magic"}, "no engine"),
        ({"hardware": "abacus"}, "no hardware"),
        ({"model": "tests/service"}, "path of this machine"),
        ({"engine": "url"}, "needs url"),
        ({"engine": "url", "url": "http://169.254.169.254/latest"}, "may not load that server"),
        ({"url": "baseline=http://127.0.0.1:8000,ngram=http://evil.example"}, "may not load that server"),
        ({"engine": "simulator", "url": "http://127.0.0.1:8000"}, "engine is simulator"),
        ({"gpu": 1}, "engine process"),
        ({"profiles": ["baseline"]}, "compared with another"),
    ],
)
def test_what_is_not_offered_is_refused(body: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(LoadgenError, match=sentence):
        prepare(read_body(SweepBody.model_validate(body), SETTINGS), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "body",
    [
        {"profiles": ["../ngram"]},
        {"workloads": ["/etc/passwd"]},
        {"profiles": ["--runs"]},
        {"model": "../../etc/passwd"},
        {"model": "/etc/passwd"},
        {"levels": [0]},
        {"levels": list(range(1, 40))},
        {"server_args": ["--trust-remote-code"]},
        {"vllm_command": "sh -c true"},
        {"runs": "/tmp"},
        {"window_s": float("nan")},
        {"k": "1,x"},
    ],
)
def test_files_commands_and_nonsense_are_no_part_of_a_body(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        SweepBody.model_validate(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"quick": True, "engine": "simulator", "hardware": "l4-8b-int4"},
        {"profiles": ["ngram", "suffix"], "workloads": ["chat"], "levels": [1, 4], "repeats": 2, "seed": 7},
        {"window_s": 0.5, "max_tokens": 64, "input_tokens": [500, 4000], "temperature": [0, 0.8], "sessions": 2},
        {"k": "1,2,4", "refine": True, "engine": "simulator"},
        {"engine": "process", "model": "Qwen/Qwen3-8B", "gpu": 1, "order": "alternate"},
        {"engine": "url", "url": "http://127.0.0.1:8000", "against": "baseline-sync"},
    ],
)
def test_the_stored_command_line_asks_for_the_same(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[SweepRequest, EngineRequest]] = []

    def caught(request: SweepRequest, wanted: EngineRequest, runs: Path, *, as_json: bool) -> ExitCode:
        del runs, as_json
        seen.append((request, wanted))
        return ExitCode.ANSWER

    monkeypatch.setattr("loadgen.commands.sweep_run.sweep", caught)
    settings = Settings(runs=Path("runs"), servers=SETTINGS.servers, profiles=Path("server_profiles"))
    asked = read_body(SweepBody.model_validate(body), settings)
    app = typer.Typer()
    app.command("sweep")(sweep_command.command)
    result = CliRunner().invoke(app, list(asked.argv[1:]))
    assert result.exit_code == 0, result.output
    assert seen == [(asked.request, asked.engine)]
