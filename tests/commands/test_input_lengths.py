"""A prompt length that cannot be measured is refused before a server starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.commands.input_lengths import require_lengths, require_room
from loadgen.commands.sweep_setup import LONGEST
from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile
from loadgen.simulator.config import EngineConfig
from loadgen.workloads.registry import get_workload

SWEEP = ("sweep", "--engine", "simulator", "--quick", "--workload", "code-edit")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--input-tokens", "1,200"), "--input-tokens 1: "),
        (("--input-tokens", "200,100000"), "--input-tokens 100000 leaves no room"),
        (("--input-tokens", "200", "--server-arg=--max-model-len", "--server-arg=150"), "has a context of 150 tokens"),
    ],
)
def test_a_length_that_cannot_be_is_refused_before_a_server_starts(
    more: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(app, [*SWEEP, *more, "--runs", str(tmp_path)], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_a_length_that_some_tokenizer_allows_is_left_to_the_server() -> None:
    require_lengths([90, 4000], [get_workload("code-edit")], 1)
    with pytest.raises(UsageError, match="--input-tokens 1: "):
        require_lengths([90, 1], [get_workload("code-edit")], 1)


def test_the_context_is_that_of_the_profile_the_argument_or_unknown() -> None:
    small = ServerProfile("small", {"max_model_len": 300})
    with pytest.raises(UsageError, match="small has a context of 300"):
        require_room([300], [small], (), None)
    require_room([300], [small], ("--max-model-len=4096",), None)
    require_room([10**6], [ServerProfile("p", {})], (), None)


def test_the_simulators_own_context_is_known() -> None:
    assert EngineConfig("p").max_model_len == LONGEST
