"""Prompts by the thousand for the truth, and a sample of them that stands for all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loadgen.simulator.config import EngineConfig
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import Noise
from loadgen.simulator.sequence import Sequence, TableDrafter, drafter_for
from loadgen.simulator.stream import key_of
from loadgen.simulator.text import TextModel
from loadgen.simulator.tokens import encode, render_chat
from loadgen.workloads.base import Prompt, PromptRequest, Workload

_BATCH = 500


@dataclass(frozen=True)
class Population:
    """Prompts with the decode steps that each takes, with and without speculation (which no batch can change)."""

    requests: tuple[SimRequest, ...]
    plain_steps: tuple[int, ...]
    speculative_steps: tuple[int, ...]

    @property
    def tokens_per_step(self) -> float:
        """Tokens per decode request-step under speculation, over all prompts."""
        return sum(self.plain_steps) / sum(self.speculative_steps)

    @property
    def relative_error(self) -> float:
        """Relative standard error of `tokens_per_step` (ratio estimator; Cochran 1977, section 6.4)."""
        plain, fast = np.array(self.plain_steps, float), np.array(self.speculative_steps, float)
        residual = plain / self.tokens_per_step - fast
        return float(residual.std(ddof=1) / fast.mean() / math.sqrt(len(fast)))

    def sample(self, count: int, key: int) -> tuple[SimRequest, ...]:
        """`count` requests in a shuffled order whose acceptance is the population's.

        Systematic sampling along the prompts ordered by their own tokens per step: the sample's mean then differs
        from the population's by about 1 / count, not 1 / sqrt(count) (Cochran 1977, chapter 8).
        """
        size = len(self.requests)
        order = sorted(range(size), key=lambda i: (self.plain_steps[i] / max(1, self.speculative_steps[i]), i))
        taken = min(count, size)
        start = (key_of(key, "start") % 1000) / 1000.0
        chosen = [order[int((i + start) * size / taken)] for i in range(taken)]
        chosen.sort(key=lambda i: key_of(key, "order", i))
        return tuple(self.requests[i] for i in chosen)


def build_population(
    workload: Workload,
    config: EngineConfig,
    text: TextModel,
    *,
    seed: int,
    least: int,
    most: int,
    wanted_error: float,
    input_tokens: int | None = None,
    temperature: float = 0.0,
) -> Population:
    """Prompts of a workload, in batches: at least `least`, until acceptance is known to `wanted_error`, at most `most`.

    Where drafts depend on earlier responses (suffix) the steps cannot be known beforehand: `least` prompts then.
    """
    drafter = drafter_for(config, per_prompt=Noise().per_prompt_acceptance)
    requests: list[SimRequest] = []
    plain: list[int] = []
    fast: list[int] = []
    population = Population((), (), ())
    for batch in _batches(workload, seed, most, input_tokens, temperature):
        for request in batch:
            answer = text.continuation(request.prompt_token_ids, temperature=request.temperature, seed=request.seed)
            sequence = Sequence(request, answer, config.max_model_len)
            if sequence.end < 1:
                raise ValueError(
                    f"a prompt of {workload.name} has {len(request.prompt_token_ids)} tokens and max_model_len is "
                    f"{config.max_model_len}"
                )
            requests.append(request)
            plain.append(sequence.end - 1)
            fast.append(_steps(sequence, drafter, config.k) if isinstance(drafter, TableDrafter) else sequence.end - 1)
        population = Population(tuple(requests), tuple(plain), tuple(fast))
        known = not isinstance(drafter, TableDrafter) or population.relative_error <= wanted_error
        if known and len(requests) >= least:
            break
    return population


def sim_request(prompt: Prompt, *, temperature: float = 0.0, seed: int | None = 0) -> SimRequest:
    """The request that a server makes of a workload's prompt."""
    if prompt.token_ids is not None:
        ids = prompt.token_ids
    elif prompt.messages is not None:
        ids = tuple(encode(render_chat([(message.role, message.content) for message in prompt.messages])))
    else:
        ids = tuple(encode(prompt.text or ""))
    return SimRequest(prompt.prompt_id, ids, prompt.max_tokens, temperature=temperature, seed=seed)


def _batches(
    workload: Workload, seed: int, most: int, input_tokens: int | None, temperature: float
) -> Iterator[list[SimRequest]]:
    made = number = 0
    while made < most:
        count = min(_BATCH, most - made)
        wanted = PromptRequest(
            seed=seed, level=1, repeat=number, count=count, purpose="probe", input_tokens=input_tokens
        )
        prompts = workload.prompts(wanted, lambda text: len(encode(text)))
        yield [sim_request(prompt, temperature=temperature) for prompt in prompts]
        made, number = made + count, number + 1


def _steps(sequence: Sequence, drafter: TableDrafter, k: int) -> int:
    """Decode steps that a request takes alone, walked through by its match arrays."""
    drafter.begin(sequence)
    out, steps, accepted, end = 1, 0, sequence.accepted, sequence.end
    while out < end:
        out += 1 + min(accepted[out], k)
        steps += 1
    return steps
