"""Fixtures: profiles from text, and the shipped folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.profiles.loader import parse_profile
from loadgen.profiles.model import ServerProfile

ProfileOf = Callable[[str], ServerProfile]


@pytest.fixture
def shipped() -> Path:
    return Path(__file__).resolve().parents[2] / "server_profiles"


@pytest.fixture
def profile_of() -> ProfileOf:
    """A profile from the lines below `speculative-config:`."""

    def make(lines: str) -> ServerProfile:
        body = "\n".join(f"  {line}" for line in lines.strip().splitlines())
        return parse_profile(f"speculative-config:\n{body}\n", name="mine", label="mine.yaml")

    return make
