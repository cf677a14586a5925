from typing import Any

import pytest

from loadgen.analysis.refine import LOOKS
from loadgen.commands import options
from loadgen.commands.sweep_setup import SweepRequest, make_experiment, make_manifest
from loadgen.engines.simulator import SimulatorEngine
from loadgen.errors import UsageError


class RealEngine(SimulatorEngine):
    """Looks like a real server to the plan."""

    name = "process"
    simulated = False


@pytest.mark.parametrize(
    ("request_", "engine", "least"),
    [
        (SweepRequest(), RealEngine(), {1: 20, 8: 32, 32: 128}),
        (SweepRequest(), SimulatorEngine(), {1: 4, 32: 4}),
        (SweepRequest(quick=True), RealEngine(), {1: 4, 16: 4}),
        (SweepRequest(window_s=5.0), RealEngine(), {1: 4, 32: 4}),
    ],
)
def test_a_real_cell_has_four_requests_a_worker_and_twenty_at_least(
    request_: SweepRequest, engine: SimulatorEngine, least: dict[int, int]
) -> None:
    shape = make_experiment(request_, engine).plan.shape
    assert {level: max(shape.min_requests, shape.requests_per_worker * level) for level in least} == least


def test_refine_starts_with_single_repeats_and_plans_its_looks() -> None:
    request = SweepRequest(refine=True)
    experiment = make_experiment(request, SimulatorEngine())
    manifest = make_manifest("r", experiment, request, SimulatorEngine(), "")
    assert experiment.plan.repeats == 1
    assert manifest.settings["looks"] == LOOKS
    assert "looks" not in make_manifest("r", experiment, SweepRequest(), SimulatorEngine(), "").settings


@pytest.mark.parametrize(
    "request_",
    [
        SweepRequest(refine=True, quick=True),
        SweepRequest(budget="10m"),
        SweepRequest(refine=True, budget="soon"),
        SweepRequest(refine=True, half_width="150%"),
        SweepRequest(half_width="5%"),
        SweepRequest(order="sideways"),
        SweepRequest(sessions=0),
        SweepRequest(start_timeout_s=float("nan")),
        SweepRequest(start_timeout_s=-1.0),
        SweepRequest(window_s=float("nan")),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(request_: SweepRequest) -> None:
    with pytest.raises(UsageError) as caught:
        make_experiment(request_, SimulatorEngine())
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("text", "value"), [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("2h", 7200.0)])
def test_times_are_read(text: str, value: float) -> None:
    assert options.seconds(text, "--budget") == value


@pytest.mark.parametrize(("text", "value"), [("10%", 0.1), ("0.05", 0.05)])
def test_shares_are_read(text: str, value: float) -> None:
    assert options.share(text, "--half-width") == pytest.approx(value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"repeats": 10**30}, "--repeats is .* from 1 to 1000"),
        ({"sessions": 10**30}, "--sessions is .* from 1 to 1000"),
        ({"max_tokens": 10**30}, "--max-tokens is .* from 1 to 1000000"),
        ({"input_tokens": "9" * 30}, "--input-tokens has .* from 1 to 1000000"),
        ({"levels": "9" * 5000}, "--levels .* is no list of numbers"),
        ({"input_lengths": "9" * 400}, "no context is that long"),
        ({"output_lengths": "lognormal:300,500"}, "no context is that long"),
        ({"input_lengths": "uniform:1-99999999999"}, "no context is that long"),
    ],
)
def test_a_number_too_large_is_refused_before_it_takes_the_memory(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        make_experiment(SweepRequest(**asked), SimulatorEngine())
    assert len(str(caught.value)) < 200
