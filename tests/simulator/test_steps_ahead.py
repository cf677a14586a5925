"""Async scheduling plans a step ahead: a request that comes while a step runs joins the one after the next."""

from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import EngineConfig, engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.cost import ApiProcess
from loadgen.simulator.hardware import PRESETS
from loadgen.simulator.model import SimRequest

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"
MACHINE = PRESETS["h200-dense8b"]
CONFIG = engine_config(load_profile("baseline", PROFILES))


def request(name: str, tokens: int = 8) -> SimRequest:
    return SimRequest(name, tuple(range(1, 40)), tokens, ignore_eos=True)


def joins_at(config: EngineConfig, steps_ahead: int) -> int:
    """The number of the step that admits a request which came while the first step ran."""
    core = SimulatedCore(config, replace(MACHINE, steps_ahead=steps_ahead))
    core.add(request("a"), 0.0)
    assert core.advance(0.0) is not None
    core.add(request("b"), 0.0)
    assert core.state().waiting == 1
    for number in range(2, 6):
        step = core.advance(0.0)
        assert step is not None
        if step.admitted:
            return number
    raise AssertionError("never admitted")


@pytest.mark.parametrize(("asynchronous", "ahead", "step"), [(True, 1, 3), (True, 0, 2), (False, 1, 2)])
def test_a_request_joins_one_step_later_only_where_steps_are_planned_ahead(
    asynchronous: bool, ahead: int, step: int
) -> None:
    assert joins_at(replace(CONFIG, async_scheduling=asynchronous), ahead) == step


def test_an_idle_engine_takes_a_request_at_once_and_an_aborted_one_never_joins() -> None:
    core = SimulatedCore(CONFIG, MACHINE)
    core.add(request("a"), 0.0)
    first = core.advance(0.0)
    assert first is not None
    assert [one.request.request_id for one in first.admitted] == ["a"]
    core.add(request("b"), 0.0)
    core.abort("b")
    assert core.state().waiting == 0
    core.add(request("c"), 0.0)
    core.abort("a")
    # Nothing runs any more: the one that waits is taken without a step in between.
    step = core.advance(0.0)
    assert step is not None
    assert [one.request.request_id for one in step.admitted] == ["c"]


def test_a_request_takes_its_way_to_the_engine_beside_the_servers_work() -> None:
    api = ApiProcess(MACHINE)
    assert api.accept(1.0) == pytest.approx(1.0 + MACHINE.api_request_s + MACHINE.request_latency_s)
    assert api.busy_s == pytest.approx(MACHINE.api_request_s)
