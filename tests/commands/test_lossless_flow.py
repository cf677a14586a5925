"""The same-quality test on the simulator's engine without HTTP: planted bugs are caught, correct servers pass."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lossless.virtual import Both, Case, VirtualServer, plan_of, prompts, servers_of
from benchmarks.lossless.virtual import verdict as verdict_of
from loadgen.analysis.lossless_model import LosslessFinding, Quality
from loadgen.errors import ServerError
from loadgen.sweep.lossless_client import Answer, Ask
from loadgen.sweep.lossless_flow import LosslessRun
from loadgen.sweep.lossless_journal import Journal
from loadgen.workloads.base import Prompt


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


class Dying:
    """Ends after so many questions, as Ctrl-C or a dead server would."""

    def __init__(self, server: VirtualServer, after: int, fault: BaseException) -> None:
        self._server = server
        self._left = after
        self._fault = fault
        self.tokenize, self.mark, self.since_mark = server.tokenize, server.mark, server.since_mark

    async def answer(self, ask: Ask) -> Answer:
        self._left -= 1
        if self._left < 0:
            raise self._fault
        return await self._server.answer(ask)


async def go_on(case: Case, folder: Path, *, dies_after: int | None = None) -> tuple[LosslessFinding, int]:
    """The finding with the journal in that folder, and the questions that were really asked."""
    baseline, tested = VirtualServer("baseline"), VirtualServer("ngram")
    dying = Dying(tested, dies_after, ServerError("it died")) if dies_after is not None else tested
    journal = Journal(folder)

    async def take(number: int) -> Sequence[Prompt]:
        return prompts(case, number)

    run = LosslessRun(plan_of(case), Both(baseline=baseline, profile=dying), lambda _text: None, journal)
    try:
        return await run.run(take), baseline.asked + tested.asked
    finally:
        journal.close()


async def test_a_test_that_broke_off_ends_as_one_that_did_not_and_asks_nothing_twice(tmp_path: Path) -> None:
    case = Case(temperatures=(0.8,), prompts=6, samples=60)
    broken = tmp_path / "broken"
    (tmp_path / "whole").mkdir()
    broken.mkdir()
    whole, all_of_them = await go_on(case, tmp_path / "whole")
    asked = 0
    for dies_after in (3, 14, 5, 70):  # in each part of the test
        with pytest.raises(ServerError, match=r"it died"):
            await go_on(case, broken, dies_after=dies_after)
        asked = (broken / "asked.jsonl").read_bytes().count(b"\n")
    found, rest = await go_on(case, broken)

    assert found == whole
    assert asked + rest == all_of_them
    assert await go_on(case, broken) == (whole, 0)


async def test_seeds_that_a_server_dies_of_are_named_with_the_cure(tmp_path: Path) -> None:
    case = Case(temperatures=(0.8,), prompts=4, samples=20)
    with pytest.raises(ServerError, match=r"it died If its log says .* --seeds off"):
        await go_on(case, tmp_path, dies_after=40)
