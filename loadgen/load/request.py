"""A prompt and a target as the request that goes out: path and body bytes, encoded once."""

from dataclasses import dataclass
from typing import Any

import msgspec

from loadgen.load.decode import Asked
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt


@dataclass(frozen=True)
class PreparedRequest:
    """One request, ready to be written."""

    url: str
    body: bytes
    asked: Asked


def prepare(prompt: Prompt, target: Target, stream: bool = True) -> PreparedRequest:
    """Chat completions for messages, completions for text and token ids; every sampling parameter is explicit."""
    sampling = target.sampling
    body: dict[str, Any] = {"model": target.model}
    if prompt.messages is not None:
        path = "/v1/chat/completions"
        body["messages"] = [{"role": m.role, "content": m.content} for m in prompt.messages]
    else:
        path = "/v1/completions"
        body["prompt"] = prompt.text if prompt.text is not None else list(prompt.token_ids or ())
    body |= {
        "max_tokens": prompt.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "ignore_eos": sampling.ignore_eos,
        "stream": stream,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if stream:
        options: dict[str, bool] = {"include_usage": True}
        if target.continuous_usage:
            options["continuous_usage_stats"] = True
        body["stream_options"] = options
    if target.return_token_ids:
        body["return_token_ids"] = True
    asked = Asked(
        prompt_id=prompt.prompt_id,
        max_tokens=prompt.max_tokens,
        ignore_eos=sampling.ignore_eos,
        keep_text=target.keep_text,
    )
    return PreparedRequest(base_url(target.url) + path, msgspec.json.encode(body), asked)


def base_url(url: str) -> str:
    """The base without a trailing slash and without `/v1`, whichever way it was given."""
    return url.rstrip("/").removesuffix("/v1")
