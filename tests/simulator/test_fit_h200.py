"""The fit of the run that was measured on an H200 with vLLM 0.26."""

from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.commands.simulate_fit import fitted
from loadgen.store.folder import RunFolder
from loadgen.store.model import ServerFacts

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"


class AsIfNewest(RunFolder):
    """The same run, its servers saying that they are vLLM 0.32."""

    def servers(self) -> tuple[ServerFacts, ...]:
        return tuple(replace(server, version="0.32.0") for server in super().servers())


def test_the_fit_knows_that_0_26_takes_async_scheduling_from_a_draft_model() -> None:
    found = fitted(RunFolder(EXAMPLE), "h200-8b")
    mistaken = fitted(AsIfNewest(EXAMPLE), "h200-8b")

    assert found.step_error == pytest.approx(0.085, abs=0.01)
    assert mistaken.step_error > 2 * found.step_error
    assert found.speedup_error is not None
    assert found.speedup_error < 0.3
