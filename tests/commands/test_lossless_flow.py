"""The same-quality test on the simulator's engine without HTTP: planted bugs are caught, correct servers pass."""

import itertools

import pytest

from loadgen.analysis.lossless_model import Drafted, LosslessFinding, Quality
from loadgen.profiles.loader import load_profile
from loadgen.simulator.bugs import Bug
from loadgen.simulator.config import engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import Noise
from loadgen.simulator.text import TextModel
from loadgen.simulator.tokens import encode, render_chat
from loadgen.sweep.lossless_client import Answer, Ask, LosslessServer
from loadgen.sweep.lossless_flow import LosslessPlan, LosslessRun
from loadgen.workloads.base import Prompt, PromptRequest
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload


class VirtualServer:
    """An engine core that answers one request at a time, in no time."""

    def __init__(self, profile: str, *, flips: float = 0.0, bug: str | None = None, accepts: bool = True) -> None:
        self._text = TextModel()
        noise = Noise(flip_share=flips, seed=sum(map(ord, profile)))
        self._core = SimulatedCore(
            engine_config(load_profile(profile)),
            PRESETS[DEFAULT_HARDWARE],
            noise=noise,
            text=self._text,
            bug=Bug.parse(bug) if bug else None,
        )
        self._number = itertools.count()
        self._accepts = accepts
        self._counts = [0, 0, 0, 0]

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        assert prompt.messages is not None
        return tuple(encode(render_chat([(m.role, m.content) for m in prompt.messages])))

    async def answer(self, ask: Ask) -> Answer:
        request = SimRequest(str(next(self._number)), ask.prompt, ask.max_tokens, ask.temperature, ask.seed)
        self._core.add(request, 0.0)
        tokens: list[int] = []
        chunks: list[int] = []
        finished = False
        while not finished:
            result = self._core.step(0.0)
            assert result is not None
            for output in result.outputs:
                tokens += output.new_token_ids
                chunks.append(len(output.new_token_ids))
                self._count(output.drafted, output.accepted, len(output.new_token_ids))
                finished = output.finish_reason is not None
        model = self._text.continuation(ask.prompt)
        wanted = range(len(tokens)) if ask.logprobs is not None else ()
        return Answer(
            tuple(tokens),
            tuple(chunks) if ask.stream else (),
            tuple(model.logprob(at, tokens[at]) for at in wanted),
            tuple(dict(model.top_logprobs(at, ask.logprobs or 0)) for at in wanted),
        )

    def _count(self, drafted: int, accepted: int, made: int) -> None:
        new = (bool(drafted), drafted, accepted if self._accepts else 0, made)
        self._counts = [a + b for a, b in zip(self._counts, new, strict=True)]

    async def mark(self) -> None:
        self._counts = [0, 0, 0, 0]

    async def since_mark(self) -> Drafted:
        return Drafted(*map(float, self._counts))


class Both:
    """Both servers up; notes the turns."""

    def __init__(self, **servers: LosslessServer) -> None:
        self._servers = servers
        self.turns: list[str] = []

    async def use(self, name: str) -> LosslessServer:
        if self.turns[-1:] != [name]:
            self.turns.append(name)
        return self._servers[name]


def prompts(count: int, repeat: int, workload: str = "code-edit") -> tuple[Prompt, ...]:
    request = PromptRequest(seed=1, level=1, repeat=repeat, count=count, input_tokens=200, max_tokens=48)
    return get_workload(workload).prompts(request, ratio_counter(4.0))


async def verdict(
    *,
    bug: str | None = None,
    flips: float = 0.0,
    temperatures: tuple[float, ...] = (),
    profile: str = "ngram",
    samples: int = 250,
    count: int = 12,
    accepts: bool = True,
) -> tuple[LosslessFinding, list[str]]:
    tested = VirtualServer(profile, flips=flips, bug=bug, accepts=accepts)
    servers = Both(baseline=VirtualServer("baseline", flips=flips), profile=tested)
    plan = LosslessPlan(
        "profile", "baseline", 4, temperatures=temperatures, samples=samples, prefixes=2, margin=0.25, wide=4
    )
    run = LosslessRun(plan, servers, lambda _text: None, lambda _name, _facts: None)
    return await run.run(prompts(count, 0), prompts(count, 1)), servers.turns


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
