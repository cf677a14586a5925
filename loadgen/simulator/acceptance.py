"""Acceptance of model drafts: drawn per position from per-prompt rates, or from synthetic rates."""

from collections.abc import Sequence

import numpy as np

from loadgen.simulator.config import EngineConfig
from loadgen.simulator.lookup import DraftTable
from loadgen.simulator.stream import key_of, uniforms
from loadgen.simulator.text import Continuation

# Conditional acceptance of the first draft token, as published for chat on 7B to 9B targets: EAGLE about 0.7, EAGLE-3
# and MTP about 0.8 (EAGLE-3, arXiv 2503.01840; DeepSeek-V3 report: 0.85 to 0.9 for MTP's first token).
_FIRST = {
    "eagle": 0.68,
    "eagle3": 0.76,
    "mtp": 0.82,
    "draft_model": 0.72,
    "medusa": 0.6,
    "dflash": 0.74,
    "dspark": 0.74,
}
# Later tokens of a draft are accepted a little less often, given that those before were.
_DECAY = 0.94
_PROMPT_SIGMA = 0.35


def conditional_rates(config: EngineConfig, prompt_key: int, *, per_prompt: bool) -> tuple[float, ...]:
    """Acceptance of draft position 1 … K given that all before it were accepted, for one prompt.

    `per_prompt` moves the rates by a normal step on the logit scale that belongs to the prompt.
    """
    first = _FIRST.get(config.method, 0.7)
    logit = np.log(first / (1.0 - first))
    if per_prompt:
        u = uniforms(key_of(prompt_key, "acceptance"), 12)
        logit += _PROMPT_SIGMA * (float(u.sum()) - 6.0)  # sum of 12 uniforms less 6: nearly standard normal
    base = float(1.0 / (1.0 + np.exp(-logit)))
    return tuple(base * _DECAY**j for j in range(config.k))


def survival(conditional: Sequence[float]) -> tuple[float, ...]:
    """Unconditional acceptance per position, S_i = product of the conditional rates up to i."""
    return tuple(float(s) for s in np.cumprod(conditional))


def drawn_table(
    answer: Continuation, config: EngineConfig, *, per_prompt: bool = True, until: int | None = None
) -> DraftTable:
    """Drafts of length K everywhere, with accepted counts that follow from prompt, position and seed.

    One uniform number per position: accepted = how many S_i lie above it, which gives each S_i exactly as its
    unconditional rate, the meaning of vLLM's `synthetic_acceptance_rates`.
    """
    count = answer.natural_length if until is None else until
    cache_key = ("drawn", config.method, config.k, config.synthetic_rates, per_prompt)
    found: DraftTable | None = answer.tables.get(cache_key)
    if found is not None and len(found.length) > count:
        return found
    rates = config.synthetic_rates
    if rates is None:
        rates = survival(conditional_rates(config, answer.key, per_prompt=per_prompt))
    seed = answer.seed if answer.temperature > 0 and answer.seed is not None else 0
    draws = uniforms(key_of(answer.key, "draft", seed), count + 1, answer.offset)
    accepted = (draws[:, None] < np.array(rates)[None, :]).sum(axis=1)
    table = DraftTable([config.k] * (count + 1), accepted.tolist())
    answer.tables[cache_key] = table
    return table
