import pytest

from benchmarks.clients.base import Reading
from benchmarks.figures import (
    BrokenRunError,
    Cost,
    differences,
    figures,
    quantile,
    ratios,
    spread,
    ttft_errors_s,
)
from benchmarks.mock import Truth
from benchmarks.scenarios import FULL, Scenario
from benchmarks.table import Runs, command_table, scenario_table

SCENARIO = Scenario("s", 2, 4, 10, 100.0, "two streams")


def truth(number: int, received_s: float, *, tokens: int = 10, aborted: bool = False) -> Truth:
    first = received_s + 0.1
    return Truth(f"bench-{number}", f"id-{number}", received_s, first, first + 0.9, 10, tokens, 0, aborted=aborted)


TRUTHS = [truth(0, 0.0), truth(1, 0.0), truth(2, 1.25), truth(3, 1.5)]
TTFT = {"bench-0": 0.101, "bench-1": 0.102, "bench-2": 0.103, "bench-3": 0.104}


def test_loop_figures() -> None:
    got = figures(SCENARIO, TRUTHS, Cost(9.0, 9.0, 50.0), Reading(cpu_s=0.5, ttft_s=TTFT), None)
    assert got.events == 40
    assert got.load_s == pytest.approx(2.5)
    assert got.of_ideal == pytest.approx(2.0 / 2.5)
    assert got.cpu_s_per_million == pytest.approx(12_500.0)
    assert got.core_share == pytest.approx(0.2)
    assert got.events_per_s == pytest.approx(16.0)
    assert [got.ttft_error_mean_ms, got.ttft_error_p99_ms] == pytest.approx([2.5, 4.0])
    assert got.ttft_n == 4
    assert got.beside_load_cpu_s is None


def test_whole_command_is_split_by_its_short_run() -> None:
    # 2 s beside the load and 0.01 s an event
    short = (SCENARIO.short, Cost(2.0 + 0.01 * SCENARIO.short.events, 1.0, 40.0))
    got = figures(SCENARIO, TRUTHS, Cost(2.4, 9.0, 50.0), Reading(reported_ttft_s=(0.11, 0.12)), short)
    assert got.cpu_s_per_million == pytest.approx(10_000.0)
    assert got.beside_load_cpu_s == pytest.approx(2.0)
    assert [got.ttft_error_mean_ms, got.ttft_error_p99_ms] == pytest.approx([10.0, 20.0])
    assert got.ttft_n == 0


def test_whole_command_without_its_short_run_is_no_measurement() -> None:
    with pytest.raises(BrokenRunError, match="short run"):
        figures(SCENARIO, TRUTHS, Cost(2.4, 9.0, 50.0), Reading(), None)


def test_warm_up_is_left_out() -> None:
    warm = truth(9, -5.0)
    got = figures(SCENARIO, [warm, *TRUTHS], Cost(9.0, 9.0, 50.0), Reading(cpu_s=0.5, ttft_s=TTFT), None)
    assert got.load_s == pytest.approx(2.5)


@pytest.mark.parametrize("broken", [truth(3, 1.5, aborted=True), truth(3, 1.5, tokens=9)])
def test_a_broken_stream_is_no_measurement(broken: Truth) -> None:
    with pytest.raises(BrokenRunError, match="1 of 4"):
        figures(SCENARIO, [*TRUTHS[:3], broken], Cost(1.0, 1.0, 1.0), Reading(cpu_s=0.5, ttft_s=TTFT), None)


def test_too_few_requests_are_no_measurement() -> None:
    with pytest.raises(BrokenRunError, match="3 of 4"):
        figures(SCENARIO, TRUTHS[:3], Cost(1.0, 1.0, 1.0), Reading(cpu_s=0.5, ttft_s=TTFT), None)


def test_ttft_matches_by_the_key_and_misses_none() -> None:
    by_id = Reading(key="x_request_id", ttft_s={f"id-{n}": 0.1 + n / 1000 for n in range(4)})
    assert ttft_errors_s(TRUTHS, by_id) == pytest.approx([0.0, 0.001, 0.002, 0.003])
    with pytest.raises(BrokenRunError, match="1 of 4"):
        ttft_errors_s(TRUTHS, Reading(ttft_s={k: v for k, v in TTFT.items() if k != "bench-2"}))


def test_statistics_over_rounds() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert quantile(list(range(1, 201)), 0.99) == 198
    middle = spread([3.0, None, 1.0, 2.0])
    assert middle is not None
    assert (middle.median, middle.least, middle.most, middle.n) == (2.0, 1.0, 3.0, 3)
    assert spread([None]) is None
    ratio, difference = ratios([2.0, None, 9.0], [1.0, 1.0, 3.0]), differences([2.0, 5.0], [1.0, None])
    assert ratio is not None
    assert difference is not None
    assert (ratio.median, ratio.n, difference.median, difference.n) == (2.5, 2, 1.0, 1)


def test_short_load_is_small() -> None:
    assert all(one.short.events * 8 <= one.events and one.short.requests == one.concurrency for one in FULL)


def test_tables_show_every_client_and_failed_rounds() -> None:
    good = figures(SCENARIO, TRUTHS, Cost(9.0, 9.0, 50.0), Reading(cpu_s=0.5, ttft_s=TTFT), None)
    runs: Runs = {"reference": [good, good], "peer": [good, None], "broken": [None, None]}
    text = scenario_table(SCENARIO, runs, "reference")
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()[4:]}
    assert list(rows) == ["reference", "peer", "broken"]
    assert rows["peer"].endswith("| 1 of 2 |")
    assert rows["broken"].endswith("| 0 of 2 |")
    assert "| 1.00 [1.00, 1.00] |" in rows["reference"]
    assert "| reference | s | – | 50 [50, 50] | 2 |" in command_table({"s": runs})
