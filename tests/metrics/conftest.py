"""Snapshots from real captures and from lines written in a test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.metrics.parse import Snapshot, parse

CAPTURES = Path(__file__).parent.parent / "data" / "captures"


@pytest.fixture
def captures() -> Path:
    return CAPTURES


@pytest.fixture
def capture() -> Callable[[str], Snapshot]:
    def read(name: str) -> Snapshot:
        return parse((CAPTURES / name).read_bytes())

    return read


@pytest.fixture
def snapshot() -> Callable[..., Snapshot]:
    """Makes a snapshot of the lines given, with one vLLM gauge so that it counts as a vLLM body."""

    def make(*lines: str) -> Snapshot:
        return parse("\n".join(("vllm:num_requests_running 0", *lines)) + "\n")

    return make
