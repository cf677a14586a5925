"""What a check needs to know beside its cell, and how it says what it found."""

from dataclasses import dataclass

from loadgen.analysis.model import Check

IMPORT = "import"
"""The engine of a run whose cells another tool measured."""


DIRECT = ("simulator", "process")
"""Engines whose servers loadgen starts on this machine and asks at 127.0.0.1, without a proxy."""


@dataclass(frozen=True)
class CellContext:
    """Facts about a cell's profile and run."""

    speculates: bool = False
    """This cell's profile drafts."""
    pair_speculates: bool = True
    """A profile of the pair drafts."""
    cost_probe: bool = False
    """Every draft is rejected on purpose."""
    template_tokens: float = 0.0
    """Prompt tokens a request may take from the prefix cache: the chat template's shared blocks."""
    direct: bool = False
    """Nothing stands between client and server: loadgen started it on this machine."""
    natural_ends: bool = False
    """Outputs end where the model ends them, not at a forced length."""
    imported: bool = False
    """Another tool measured the cell; its files hold no server counters."""
    tokens_per_event: float = 1.0
    """K + 1 at most: how coarse a stream's edges are."""


def void(name: str, cause: str, cure: str) -> Check:
    """A check that keeps the cell and its pair out of verdicts."""
    return Check(name, voids=True, cause=cause, cure=cure)


def warn(name: str, cause: str, cure: str) -> Check:
    """A check that is shown and changes no verdict."""
    return Check(name, voids=False, cause=cause, cure=cure)
