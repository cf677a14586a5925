"""The sampling test: false alarms at their rate, planted distances seen with the power that is stated."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from loadgen.analysis.lossless_model import Drafted, Place, Quality, SamplingFinding
from loadgen.analysis.lossless_sampling import compare_places, judge_sampling

SHAPES = ((0.9, 0.05, 0.03, 0.02), (0.6, 0.3, 0.1), (0.4, 0.3, 0.15, 0.1, 0.05), (0.99, 0.01))
ENOUGH = Drafted(1000, 4000, 1500, 5000)


def draw(rng: np.random.Generator, shares: Sequence[float], n: int) -> Mapping[int, int]:
    return {token: int(count) for token, count in enumerate(rng.multinomial(n, shares)) if count}


def same_places(rng: np.random.Generator, n: int, positions: int = 4) -> list[Place]:
    return [
        Place(str(shape), position, draw(rng, shape, n), draw(rng, shape, n))
        for shape in SHAPES
        for position in range(1, positions + 1)
    ]


def verdict(places: list[Place], control: list[Place] | None = None, drafted: Drafted = ENOUGH) -> SamplingFinding:
    return judge_sampling(places, control or [], drafted, temperature=0.8, samples=1500)


def test_a_correct_server_is_called_different_at_most_at_the_stated_rate() -> None:
    rng = np.random.default_rng(7)
    runs = 150
    called = sum(verdict(same_places(rng, 800)).quality is Quality.DIFFERS for _ in range(runs))

    # 1 % of 150 is 1.5; more than 5 come in fewer than 1 of 200 such tests.
    assert called <= 5


def test_a_correct_server_passes_at_the_default_size() -> None:
    rng = np.random.default_rng(8)
    qualities = [verdict(same_places(rng, 1500)).quality for _ in range(20)]

    assert qualities.count(Quality.SAME) >= 18


@pytest.mark.parametrize("shares", SHAPES)
def test_the_detectable_distance_is_seen_with_the_stated_power(shares: tuple[float, ...]) -> None:
    rng = np.random.default_rng(9)
    alpha, n, runs = 0.005, 1500, 80
    distance = compare_places([Place("p", 2, draw(rng, shares, n), draw(rng, shares, n))], alpha, 0)[0].detectable_tv
    moved = [shares[0] - distance, shares[1] + distance, *shares[2:]]
    findings = [
        compare_places([Place("p", 2, draw(rng, shares, n), draw(rng, moved, n))], alpha, seed)[0]
        for seed in range(runs)
    ]

    seen = sum(found.p < alpha for found in findings) / runs
    assert 0.6 <= seen <= 0.95  # 80 % less or more four standard errors of 80 runs
    covered = sum(found.tv_upper95 >= distance for found in findings) / runs
    assert covered >= 0.85  # 95 % less four standard errors


def test_a_planted_distance_names_its_place() -> None:
    rng = np.random.default_rng(10)
    places = same_places(rng, 1500)
    places[6] = Place("bad", 3, draw(rng, (0.6, 0.3, 0.1), 1500), draw(rng, (0.45, 0.45, 0.1), 1500))

    found = verdict(places)

    assert found.quality is Quality.DIFFERS
    assert "position 3" in found.reason
    assert "more than the speculation" not in found.reason


def test_a_difference_at_the_first_token_is_not_put_on_the_drafts() -> None:
    rng = np.random.default_rng(11)
    place = Place("p", 1, draw(rng, (0.6, 0.4), 1500), draw(rng, (0.4, 0.6), 1500))

    assert "no draft touches" in verdict([place]).reason


def test_a_baseline_that_differs_from_itself_gives_no_verdict() -> None:
    rng = np.random.default_rng(12)
    shaky = [Place("p", 2, draw(rng, (0.6, 0.4), 1500), draw(rng, (0.4, 0.6), 1500))]

    found = verdict(shaky, shaky)

    assert found.quality is Quality.NOT_TESTED
    assert "differ from each other" in found.reason


def test_too_few_samples_leave_room_and_say_how_many_are_needed() -> None:
    rng = np.random.default_rng(13)
    found = verdict(same_places(rng, 60))

    assert found.quality is Quality.NOT_TESTED
    assert "--samples" in found.reason


@pytest.mark.parametrize(
    ("drafted", "words"),
    [
        (Drafted(None, None, None, 5000), "no counters"),
        (Drafted(150, 600, 0, 5000), "fault of the server"),  # vLLM 0.32 on a CPU
        (Drafted(99, 400, 0, 5000), "only 0 tokens"),
        (Drafted(500, 2000, 99, 5000), "only 99 tokens"),
    ],
)
def test_without_tokens_from_drafts_nothing_is_tested(drafted: Drafted, words: str) -> None:
    rng = np.random.default_rng(14)
    found = verdict(same_places(rng, 1500), drafted=drafted)

    assert found.quality is Quality.NOT_TESTED
    assert words in found.reason


def test_no_place_at_all_is_not_tested() -> None:
    assert verdict([]).quality is Quality.NOT_TESTED


def test_p_values_after_holm_rise_with_p_and_stay_within_one() -> None:
    rng = np.random.default_rng(15)
    found = sorted(compare_places(same_places(rng, 300), 0.025, 1), key=lambda place: place.p)

    assert all(a.p_holm <= b.p_holm <= 1.0 for a, b in itertools.pairwise(found))
    assert all(place.p <= place.p_holm for place in found)


def test_an_ended_answer_is_a_token_of_its_own() -> None:
    early = Place("p", 4, {5: 1000}, {5: 700, -1: 300})

    assert verdict([early]).quality is Quality.DIFFERS
