"""The same-quality test on the simulator's engine without HTTP: planted bugs are caught, correct servers pass."""

from typing import Any

import pytest

from benchmarks.lossless.virtual import Case, servers_of
from benchmarks.lossless.virtual import verdict as verdict_of
from loadgen.analysis.lossless_model import LosslessFinding, Quality


async def verdict(**changes: Any) -> tuple[LosslessFinding, list[str]]:
    case = Case(**({"prompts": changes.pop("count")} if "count" in changes else {}), **changes)
    servers = servers_of(case)
    return await verdict_of(case, servers), servers.turns


@pytest.mark.parametrize("profile", ["ngram", "eagle"])
async def test_a_correct_server_passes_although_near_ties_flip(profile: str) -> None:
    found, turns = await verdict(flips=0.5, temperatures=(0.8,), profile=profile)

    assert found.quality is Quality.SAME
    assert found.greedy is not None
    assert found.greedy.soft_divergences > 3
    assert found.greedy.exact.count < found.greedy.exact.n
    assert turns == ["baseline", "profile", "baseline"]


@pytest.mark.parametrize("bug", ["bonus-shift:0.2", "accept-wrong:0.1"])
@pytest.mark.parametrize("profile", ["ngram", "eagle"])
async def test_wrong_tokens_are_caught_at_temperature_0_among_flips(bug: str, profile: str) -> None:
    found, _ = await verdict(bug=bug, flips=0.5, profile=profile)

    assert found.quality is Quality.DIFFERS
    assert found.greedy is not None
    assert found.greedy.control_hard.count == 0
    assert all(d.gap is None or d.gap > 0.25 for d in found.greedy.hard_divergences)
    assert "verifying drafts" in found.greedy.reason
    # Every planted token came out of a verified draft. (Only known where the answer was streamed alone.)
    alone = [d for d in found.greedy.hard_divergences if d.concurrency == 1]
    assert alone
    if bug.startswith("bonus"):
        assert all(d.in_chunk > 1 for d in alone)


@pytest.mark.parametrize("bug", ["draft-temperature:0.2", "no-residual"])
async def test_a_wrong_distribution_is_caught_where_greedy_answers_are_equal(bug: str) -> None:
    found, _ = await verdict(bug=bug, temperatures=(0.8,))

    assert found.greedy is not None
    assert found.greedy.quality is Quality.SAME
    assert [part.quality for part in found.sampling] == [Quality.DIFFERS]
    assert found.quality is Quality.DIFFERS
    worst = min(found.sampling[0].places, key=lambda place: place.p)
    assert worst.position >= 2
    first = [place for place in found.sampling[0].places if place.position == 1]
    assert all(place.p_holm > 0.01 for place in first)


async def test_drafts_that_are_never_accepted_are_not_called_the_same() -> None:
    found, _ = await verdict(temperatures=(0.8,), accepts=False, samples=50)

    assert found.quality is Quality.NOT_TESTED
    assert found.greedy is not None
    assert "fault of the server" in found.greedy.reason
    assert "fault of the server" in found.sampling[0].reason
    assert found.sampling[0].places == ()  # the baseline is not sampled for nothing


async def test_a_profile_that_never_drafts_is_not_called_the_same() -> None:
    found, _ = await verdict(profile="baseline")

    assert found.quality is Quality.NOT_TESTED


async def test_correct_servers_pass_over_and_over() -> None:
    qualities = [(await verdict(flips=share, count=8))[0].quality for share in (0.3, 0.6, 1.0)]

    assert qualities == [Quality.SAME] * 3
