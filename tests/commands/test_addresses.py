"""Every command that takes a URL refuses a wrong one alike, and no secret gets into a run folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.cli import main
from loadgen.errors import ExitCode

RUN = Path(__file__).parents[2] / "examples" / "h200" / "dense8b"
COMMANDS = {
    "load": ("load", "--url", "{}"),
    "sweep": ("sweep", "--url", "baseline={},ngram=http://127.0.0.1:1"),
    "answer": ("answer", "--url", "baseline={}"),
    "lossless": ("lossless", "--url", "baseline={}"),
    "locust": ("locust", "--url", "baseline={}"),
    "verify": ("verify", str(RUN), "--url", "baseline={}"),
    "replay": ("replay", str(RUN), "--to", "{}"),
    "serve": ("serve", "--server", "{}"),
}
FAULTS = {
    "http://[bad": "no URL of a server; write http://HOST:PORT",
    "http://127.0.0.1:999999": "no valid port (1 to 65535)",
    "http://": "no URL of a server",
    "ftp://127.0.0.1": "no URL of a server",
    "http://user:hunter2@127.0.0.1:1": "leave it out",
    "http://127.0.0.1:1/v1/chat/completions": "without /v1/chat/completions",
    "http://127.0.0.1:1?key=hunter2": "behind ? or #",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", FAULTS)
def test_a_wrong_url_is_one_sentence_with_its_cure(
    command: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadgen", *(word.format(url) for word in COMMANDS[command])])
    monkeypatch.setenv("LOADGEN_TOKEN", "a-token-of-twenty-characters")
    monkeypatch.setattr("loadgen.store.lock.FolderLock.__enter__", lambda lock: lock)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == ExitCode.USAGE
    assert FAULTS[url] in said
    assert len(said.strip().splitlines()) == 1
    assert "user:" not in said
    assert list(tmp_path.rglob("manifest.json")) == []


def test_no_key_and_no_token_stands_in_a_run_folder(tmp_path: Path) -> None:
    secrets = {"OPENAI_API_KEY": "sk-hunter2-one", "HF_TOKEN": "hf-hunter2-two", "VLLM_API_KEY": "hunter2-three"}
    words = [
        *("sweep", "--engine", "simulator", "--profile", "ngram", "--workload", "chat", "--levels", "1"),
        *(
            "--repeats",
            "1",
            "--window",
            "0.2",
            "--max-tokens",
            "8",
            "--server-env",
            "HF_TOKEN",
            "--runs",
            str(tmp_path),
        ),
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "loadgen", *words], env=os.environ | secrets, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (ExitCode.ANSWER, ExitCode.NO_VERDICT), ended.stderr
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 5
    for path in kept:
        assert b"hunter2" not in path.read_bytes(), path
    assert "hunter2" not in ended.stdout + ended.stderr
