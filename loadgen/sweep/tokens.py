"""How long a token is on the server at hand, so that prompts get the length that was asked for."""

import httpx2

from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter, Workload
from loadgen.workloads.lengths import ratio_counter

DEFAULT_CHARS_PER_TOKEN = 4.0
"""English and code on current vocabularies; used where a server has no `/tokenize`."""
SAMPLE_PROMPTS = 4


async def measure_chars_per_token(url: str, model: str, workloads: dict[str, Workload], seed: int) -> float:
    """Characters per token of the workloads' own texts by the server's `/tokenize`; 4.0 if it has none.

    One number for the whole run: prompts must be the same bytes for every profile.
    """
    counter = ratio_counter(DEFAULT_CHARS_PER_TOKEN)
    texts = [text for w in workloads.values() for text in _sample(w, seed, counter)]
    characters = tokens = 0
    async with httpx2.AsyncClient(trust_env=False, timeout=30.0) as client:
        for text in texts:
            try:
                reply = await client.post(f"{url}/tokenize", json={"model": model, "prompt": text})
                count = reply.json()["count"] if reply.status_code == 200 else 0
            except (httpx2.HTTPError, ValueError, KeyError, TypeError):
                return DEFAULT_CHARS_PER_TOKEN
            if not isinstance(count, int) or count < 1:
                return DEFAULT_CHARS_PER_TOKEN
            characters += len(text)
            tokens += count
    return characters / tokens if tokens else DEFAULT_CHARS_PER_TOKEN


def _sample(workload: Workload, seed: int, counter: TokenCounter) -> list[str]:
    request = PromptRequest(seed=seed, level=1, repeat=0, count=SAMPLE_PROMPTS, purpose="probe")
    return [_text(prompt) for prompt in workload.prompts(request, counter)]


def _text(prompt: Prompt) -> str:
    if prompt.messages:
        return "\n".join(message.content for message in prompt.messages)
    return prompt.text or ""
