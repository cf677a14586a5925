"""Tokens/s by level of a simulated server under a closed loop of given lengths: what a run's curve is held against."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.simulator.config import EngineConfig
from loadgen.simulator.core import SimulatedCore
from loadgen.simulator.hardware import Hardware
from loadgen.simulator.model import SimRequest
from loadgen.simulator.noise import QUIET
from loadgen.simulator.text import TextModel
from loadgen.simulator.virtual import VirtualLoop, run_closed_loop
from loadgen.workloads.lengths import LengthDistribution

_TEMPLATE = tuple(range(1, 17))
"""One cache block that all prompts share, as a chat template's is."""
_REQUESTS_PER_WORKER = 5
_MIN_REQUESTS = 60


@dataclass(frozen=True)
class Lengths:
    """Of prompts and answers, in tokens; answers are forced to their length."""

    prompt: int
    output: LengthDistribution


def tokens_per_s(
    hardware: Hardware, config: EngineConfig, lengths: Lengths, levels: Sequence[int], seed: int = 0
) -> dict[int, float]:
    """Output tokens/s of a quiet server, by level; every configuration gets the same prompts.

    Meant for drafts whose acceptance does not depend on the text (synthetic rates, models), for the prompts are random.
    """
    text = TextModel(kept=4000)
    return {level: _level(hardware, config, lengths, level, seed, text) for level in levels}


def _level(hardware: Hardware, config: EngineConfig, lengths: Lengths, level: int, seed: int, text: TextModel) -> float:
    window = max(_MIN_REQUESTS, _REQUESTS_PER_WORKER * level)
    settle = max(20, 2 * level)
    rng = random.Random(f"{seed}/{level}")
    requests = [_request(f"{level}/{number}", lengths, rng) for number in range(window + settle + 3 * level)]
    core = SimulatedCore(config, hardware, noise=QUIET, text=text)
    loop = VirtualLoop(level, window, settle_requests=settle)
    return run_closed_loop(core, requests.__getitem__, loop).tokens_per_s


def _request(name: str, lengths: Lengths, rng: random.Random) -> SimRequest:
    prompt = _TEMPLATE + tuple(rng.randrange(17, 30_000) for _ in range(lengths.prompt - len(_TEMPLATE)))
    return SimRequest(name, prompt, lengths.output.draw(rng), seed=0, ignore_eos=True)
