"""How long a token is on the server at hand, so that prompts get the length that was asked for."""

import httpx2

from loadgen.load.request import base_url
from loadgen.load.target import Target, bearer
from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter, Workload
from loadgen.workloads.lengths import ratio_counter

DEFAULT_CHARS_PER_TOKEN = 4.0
"""English and code on current vocabularies; used where a server has no `/tokenize`."""
SAMPLE_PROMPTS = 4


async def measure_chars_per_token(target: Target, workloads: dict[str, Workload], seed: int) -> dict[str, float]:
    """Workload → characters per token of its own texts by the server's `/tokenize`; 4.0 where it has none.

    Measured once for a whole run, since prompts must be the same bytes for every profile; per workload, since Spanish
    prose and code differ by half.
    """
    counter = ratio_counter(DEFAULT_CHARS_PER_TOKEN)
    async with httpx2.AsyncClient(trust_env=False, timeout=30.0, headers=bearer(target)) as client:
        found: dict[str, float] = {}
        for name, workload in workloads.items():
            texts = _sample(workload, seed, counter)
            counts = [await _count(client, target, text) for text in texts]
            known = [(len(text), count) for text, count in zip(texts, counts, strict=True) if count]
            tokens = sum(count for _, count in known)
            found[name] = sum(length for length, _ in known) / tokens if tokens else DEFAULT_CHARS_PER_TOKEN
    return found


async def _count(client: httpx2.AsyncClient, target: Target, text: str) -> int | None:
    """Tokens of the text; None if the server does not say."""
    try:
        reply = await client.post(f"{base_url(target.url)}/tokenize", json={"model": target.model, "prompt": text})
        count = reply.json()["count"] if reply.status_code == 200 else None
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return None
    return count if isinstance(count, int) and count > 0 else None


def _sample(workload: Workload, seed: int, counter: TokenCounter) -> list[str]:
    request = PromptRequest(seed=seed, level=1, repeat=0, count=SAMPLE_PROMPTS, purpose="probe")
    return [_text(prompt) for prompt in workload.prompts(request, counter)]


def _text(prompt: Prompt) -> str:
    if prompt.messages:
        return "\n".join(message.content for message in prompt.messages)
    return prompt.text or ""
