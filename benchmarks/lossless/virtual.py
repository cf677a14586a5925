"""The same-quality test against the simulator's engine without HTTP and without waiting."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.analysis.lossless_model import Drafted, LosslessFinding
from loadgen.profiles.loader import load_profile
from loadgen.simulator.bugs import Bug
from loadgen.simulator.config import engine_config
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.simulator.model import SimRequest, StepOutput
from loadgen.simulator.noise import Noise
from loadgen.simulator.text import Continuation, TextModel, with_flips
from loadgen.simulator.tokens import encode, render_chat
from loadgen.sweep.lossless_client import Answer, Ask, LosslessServer
from loadgen.sweep.lossless_flow import LosslessRun
from loadgen.sweep.lossless_plan import LosslessPlan
from loadgen.workloads.base import Prompt, PromptRequest
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload


class VirtualServer:
    """An engine core that answers one request at a time, in no time."""

    def __init__(
        self,
        profile: str,
        *,
        flips: float = 0.0,
        bug: str | None = None,
        accepts: bool = True,
        seed: int = 0,
        text: TextModel | None = None,
    ) -> None:
        self._text = text or TextModel()
        self._noise = noise = Noise(flip_share=flips, seed=sum(map(ord, profile)) + 1000 * seed)
        self._core = SimulatedCore(
            engine_config(load_profile(profile)),
            PRESETS[DEFAULT_HARDWARE],
            noise=noise,
            text=self._text,
            bug=Bug.parse(bug) if bug else None,
        )
        self._number = itertools.count()
        self._accepts = accepts
        self._greedy: dict[tuple[tuple[int, ...], int], list[StepOutput]] = {}
        self._flipped: dict[tuple[int, ...], Continuation] = {}
        self._counts = [0, 0, 0, 0]
        self.asked = 0
        """Questions answered so far."""

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids."""
        assert prompt.messages is not None
        return tuple(encode(render_chat([(m.role, m.content) for m in prompt.messages])))

    async def answer(self, ask: Ask) -> Answer:
        """One completion."""
        self.asked += 1
        if self._core.config.method == "none":
            tokens = self.said(ask)
            chunks = [1] * len(tokens)
            self._count(0, 0, len(tokens))
        else:
            steps = self._steps(ask)
            tokens = [token for output in steps for token in output.new_token_ids]
            chunks = [len(output.new_token_ids) for output in steps]
            for output in steps:
                self._count(output.drafted, output.accepted, len(output.new_token_ids))
        answer = Answer(tuple(tokens), tuple(chunks) if ask.stream else ())
        if ask.logprobs is None:
            return answer
        model = self._text.continuation(ask.prompt)
        return replace(
            answer,
            chosen=tuple(model.logprob(at, token) for at, token in enumerate(tokens)),
            top=tuple(dict(model.top_logprobs(at, ask.logprobs)) for at in range(len(tokens))),
        )

    def said(self, ask: Ask) -> list[int]:
        """What the engine says without drafts and bugs: the model's own answer, without going through the steps."""
        answer = self._text.continuation(ask.prompt, temperature=ask.temperature, seed=ask.seed)
        if self._noise.flip_share and ask.temperature == 0:
            if ask.prompt not in self._flipped:
                salt = f"{self._noise.seed}/{self._core.config.method}"
                self._flipped[ask.prompt] = with_flips(self._text, answer, self._noise.flip_share, salt)
            answer = self._flipped[ask.prompt]
        return list(answer.tokens[: min(ask.max_tokens, answer.natural_length)])

    def _steps(self, ask: Ask) -> list[StepOutput]:
        """What the engine puts out, step by step; at temperature 0 it says the same when asked again."""
        if ask.temperature > 0:
            return self.run(ask)
        key = ask.prompt, ask.max_tokens
        if key not in self._greedy:
            self._greedy[key] = self.run(ask)
        return self._greedy[key]

    def run(self, ask: Ask) -> list[StepOutput]:
        """What the engine puts out, really asked."""
        request = SimRequest(str(next(self._number)), ask.prompt, ask.max_tokens, ask.temperature, ask.seed)
        self._core.add(request, 0.0)
        steps: list[StepOutput] = []
        while not steps or steps[-1].finish_reason is None:
            result = self._core.step(0.0)
            assert result is not None
            steps += result.outputs
        return steps

    def _count(self, drafted: int, accepted: int, made: int) -> None:
        new = (bool(drafted), drafted, accepted if self._accepts else 0, made)
        self._counts = [a + b for a, b in zip(self._counts, new, strict=True)]

    async def mark(self) -> None:
        """From here on counts `since_mark`."""
        self._counts = [0, 0, 0, 0]

    async def since_mark(self) -> Drafted:
        """What the counters did since the mark."""
        drafts, drafted, accepted, made = map(float, self._counts)
        return Drafted(drafts, drafted, accepted, made)


class Both:
    """Both servers up; notes the turns."""

    def __init__(self, **servers: LosslessServer) -> None:
        self._servers = servers
        self.turns: list[str] = []

    async def use(self, name: str) -> LosslessServer:
        """The server of that name."""
        if self.turns[-1:] != [name]:
            self.turns.append(name)
        return self._servers[name]


@dataclass(frozen=True)
class Case:
    """One test of one server."""

    bug: str | None = None
    flips: float = 0.0
    """Share of near ties that either server decides another way."""
    temperatures: tuple[float, ...] = ()
    profile: str = "ngram"
    samples: int = 250
    prefixes: int = 2
    prompts: int = 12
    margin: float = 0.25
    accepts: bool = True
    seed: int = 1
    workload: str = "code-edit"
    max_tokens: int = 48


def prompts(case: Case, number: int) -> Sequence[Prompt]:
    """Set 0 or 1."""
    request = PromptRequest(
        seed=case.seed, level=1, repeat=number, count=case.prompts, input_tokens=200, max_tokens=case.max_tokens
    )
    return get_workload(case.workload).prompts(request, ratio_counter(4.0))


def servers_of(case: Case) -> Both:
    """The baseline and the server under test."""
    text = TextModel()
    tested = VirtualServer(
        case.profile, flips=case.flips, bug=case.bug, accepts=case.accepts, seed=case.seed, text=text
    )
    return Both(baseline=VirtualServer("baseline", flips=case.flips, seed=case.seed, text=text), profile=tested)


def plan_of(case: Case) -> LosslessPlan:
    """The plan for a case."""
    return LosslessPlan(
        "profile",
        "baseline",
        4,
        temperatures=case.temperatures,
        samples=case.samples,
        prefixes=case.prefixes,
        margin=case.margin,
        wide=4,
        seed=case.seed,
    )


async def verdict(case: Case, servers: Both | None = None) -> LosslessFinding:
    """What the test says of it."""

    async def take(number: int) -> Sequence[Prompt]:
        return prompts(case, number)

    return await LosslessRun(plan_of(case), servers or servers_of(case), lambda _text: None).run(take)
