"""Open load in virtual time, and how far the plan's closed-loop estimate is from it (docs/planning.md)."""

from dataclasses import replace

import numpy as np
import pytest

from loadgen.analysis.capacity_model import LoadPoint, RequestTimes, Slo
from loadgen.analysis.capacity_queue import under_rate, with_users
from loadgen.analysis.capacity_search import Station, station_of
from loadgen.profiles.model import ServerProfile
from loadgen.simulator.config import engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import QUIET
from loadgen.simulator.population import build_population
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, run_closed_loop
from loadgen.simulator.virtual_open import OpenRequest, run_at_rate, run_with_users
from loadgen.workloads.registry import get_workload

LEVELS = (1, 2, 4, 8, 16, 32)
PROMPTS = 800
SLOS = (Slo("ttft", 0.5, 1), Slo("ttft", 0.99, 1), Slo("tpot", 0.5, 1), Slo("tpot", 0.95, 1))


class World:
    """A quiet simulated baseline server, its closed-loop levels, and as many requests as asked for."""

    def __init__(self) -> None:
        self.text = TextModel(kept=PROMPTS + 1)
        self.config = engine_config(ServerProfile("baseline", {}))
        workload = get_workload("chat")
        population = build_population(
            workload, self.config, self.text, seed=3, least=PROMPTS, most=PROMPTS, wanted_error=0.1
        )
        self.requests = population.requests
        station = station_of([self.level(level) for level in LEVELS], SLOS)
        assert station is not None
        self.station: Station = station

    def core(self) -> SimulatedCore:
        return SimulatedCore(self.config, PRESETS[DEFAULT_HARDWARE], noise=QUIET, text=self.text)

    def source(self, index: int) -> SimRequest:
        return replace(self.requests[index % PROMPTS], request_id=f"r{index}")

    def level(self, level: int) -> LoadPoint:
        run = run_closed_loop(self.core(), self.source, VirtualLoop(level, max(60, 8 * level), settle_requests=level))
        ended = tuple(
            RequestTimes(ttft, tpot, ttft + tpot * (count - 1))
            for ttft, tpot, count in zip(run.ttft_s, run.tpot_s, run.output_tokens, strict=True)
        )
        return LoadPoint(level, run.requests / run.window_s, run.tokens_per_s, tuple(sorted(run.ttft_s)), ended)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def measured(requests: tuple[OpenRequest, ...]) -> list[float]:
    ttft = [one.ttft_s for one in requests]
    tpot = [one.tpot_s for one in requests if one.tpot_s is not None]
    return [float(np.quantile(ttft if s.metric == "ttft" else tpot, s.quantile)) for s in SLOS]


@pytest.mark.parametrize("load", [0.4, 0.7])
def test_the_estimate_of_a_rate_is_within_a_quarter_of_open_loop(world: World, load: float) -> None:
    rate = load * float(world.station.curve.rates()[-1])
    truth = run_at_rate(world.core(), world.source, rate, requests=700, seed=5)
    company = under_rate(world.station.curve, rate)
    assert company is not None
    in_flight = rate * sum(one.e2e_s for one in truth) / len(truth)
    assert company.in_flight == pytest.approx(in_flight, rel=0.15)
    estimates = [finding.estimate.value for finding in world.station.findings(company, SLOS)]
    assert estimates == pytest.approx(measured(truth), rel=0.25)


def test_the_estimate_of_users_is_within_a_quarter_of_thinking_users(world: World) -> None:
    truth = run_with_users(world.core(), world.source, 120, 10.0, length_s=60.0, seed=5, settle_s=10.0)
    company = with_users(world.station.curve, 120, 10.0)
    assert len(truth) / 50 == pytest.approx(company.rate_per_s, rel=0.1)
    estimates = [finding.estimate.value for finding in world.station.findings(company, SLOS)]
    assert estimates == pytest.approx(measured(truth), rel=0.25)


def test_users_are_not_requests_in_flight(world: World) -> None:
    assert with_users(world.station.curve, 120, 10.0).in_flight < 12


def test_at_a_low_rate_an_open_request_is_alone(world: World) -> None:
    alone = world.level(1)
    truth = run_at_rate(world.core(), world.source, 0.05, requests=40, seed=1, settle=5)
    assert np.mean([one.ttft_s for one in truth]) == pytest.approx(np.mean(alone.begun), rel=0.1)
    assert np.mean([one.tpot_s or 0 for one in truth]) == pytest.approx(
        np.mean([one.tpot_s or 0 for one in alone.ended]), rel=0.1
    )


def test_the_same_seed_gives_the_same_run(world: World) -> None:
    runs = [run_at_rate(world.core(), world.source, 5.0, requests=30, seed=9, settle=2) for _ in range(2)]
    assert runs[0] == runs[1]
    assert all(one.start_s > 0 and one.e2e_s >= one.ttft_s > 0 for one in runs[0])
