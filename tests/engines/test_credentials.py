"""Keys and tokens stand in no command and in no run folder."""

import pytest

from loadgen.engines.credentials import (
    key_variable,
    masked,
    refuse_secrets,
    server_variables,
    without_secrets,
)
from loadgen.engines.local_vllm import find_local_vllm
from loadgen.errors import UsageError


def test_keys_and_tokens_are_not_shown() -> None:
    command = ("vllm", "serve", "--api-key", "s3cret", "more", "--hf-token=t0ken", "--max-tokens", "5", "--port", "1")

    assert without_secrets(command) == (
        *("vllm", "serve", "--api-key", "***", "***", "--hf-token=***"),
        *("--max-tokens", "5", "--port", "1"),
    )


@pytest.mark.parametrize(
    ("word", "cure"),
    [
        ("--api-key", "export VLLM_API_KEY"),
        ("--api_key=s3cret", "export VLLM_API_KEY"),
        ("--hf-token=s3cret", "export HF_TOKEN"),
        ("HF_TOKEN=s3cret", "export HF_TOKEN"),
        ("--some-password=s3cret", "export it"),
    ],
)
def test_a_secret_among_a_servers_arguments_is_refused(word: str, cure: str) -> None:
    with pytest.raises(UsageError, match=cure) as caught:
        refuse_secrets(("--max-num-seqs", word), "--server-arg")
    assert "s3cret" not in str(caught.value)


def test_options_that_only_sound_like_it_pass() -> None:
    words = ("--ssl-keyfile=key.pem", "--max-num-batched-tokens=8", "--tokenizer", "a", "--return-tokens-as-token-ids")
    refuse_secrets(words, "--server-arg")
    with pytest.raises(UsageError, match="export HF_TOKEN"):
        refuse_secrets((*words, "--hf-token=s3cret"), "--server-arg")


def test_a_variable_by_its_name_takes_the_environments_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "s3cret")
    assert server_variables(("HF_TOKEN", "OMP_NUM_THREADS=4", "EMPTY=")) == {
        "HF_TOKEN": "s3cret",
        "OMP_NUM_THREADS": "4",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HF_TOKEN=s3cret", "write --server-env HF_TOKEN"),
        ("my_password=s3cret", "write --server-env my_password"),
        ("NOT_SET_ANYWHERE", "is not set"),
        ("=s3cret", "NAME=VALUE"),
        ("A B=1", "NAME=VALUE"),
        ("", "NAME=VALUE"),
    ],
)
def test_what_is_no_setting_or_holds_a_secret_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        server_variables((text,))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("vllm serve --api-key s3cret", "export VLLM_API_KEY"),
        ("env HF_TOKEN=s3cret vllm serve", "export HF_TOKEN"),
        ("vllm 'serve", "close its quotes"),
    ],
)
def test_a_vllm_command_holds_no_secret_and_closes_its_quotes(command: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_local_vllm(command)


def test_the_environments_keys_are_starred_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    monkeypatch.setenv("HF_TOKEN", "a")
    assert masked("no sk-hunter2 here, and a word stays") == "no *** here, and a word stays"


@pytest.mark.parametrize(
    ("engine", "key", "variable"),
    [
        ("process", "s3cret", "VLLM_API_KEY"),
        ("docker", "s3cret", "VLLM_API_KEY"),
        ("process", "", "OPENAI_API_KEY"),
        ("url", "s3cret", "OPENAI_API_KEY"),
    ],
)
def test_a_server_that_was_started_is_asked_with_the_key_that_locks_it(
    engine: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", key)
    assert key_variable(engine) == variable
