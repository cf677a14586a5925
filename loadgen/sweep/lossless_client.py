"""A server as the same-quality test asks it: token ids in, token ids out."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import httpx2
import msgspec

from loadgen.analysis.lossless_model import Drafted
from loadgen.errors import ServerError
from loadgen.load.client import TransportFactory, make_client
from loadgen.load.sse import SseDecoder
from loadgen.load.target import Target
from loadgen.metrics.delta import delta
from loadgen.metrics.parse import Snapshot
from loadgen.metrics.scrape import MetricsClient, wait_idle
from loadgen.workloads.base import Prompt

_ID_NAME = "token_id:"


@dataclass(frozen=True)
class Ask:
    """One completion of a token-id prompt."""

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    """Ask for the chosen token's log-probability and those of the likeliest few (at most 20)."""
    stream: bool = False
    """True tells the tokens of each chunk."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    tokens: tuple[int, ...]
    chunks: tuple[int, ...] = ()
    """Tokens per streamed chunk; empty if not streamed."""
    chosen: tuple[float, ...] = ()
    """Log-probability of each token, where asked for."""
    top: tuple[dict[int, float], ...] = ()
    """Per position: token id → log-probability of the likeliest tokens."""


class LosslessServer(Protocol):
    """What the test needs of a server."""

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids, chat template included."""

    async def answer(self, ask: Ask) -> Answer:
        """One completion; ServerError if there is none."""

    async def mark(self) -> None:
        """From here on counts `since_mark`."""

    async def since_mark(self) -> Drafted:
        """What the speculative counters did since the mark."""


class HttpServer:
    """A vLLM-compatible server over HTTP."""

    def __init__(
        self,
        url: str,
        model: str,
        transport_factory: TransportFactory | None = None,
        *,
        api_key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        self._url = url
        self._model = model
        target = Target(url=url, model=model, api_key_variable=api_key_variable)
        self._client = make_client(target, transport_factory)
        self._metrics = MetricsClient(url)
        self._before: Snapshot | None = None

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.aclose()
        await self._metrics.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids by the server's `/tokenize`; ServerError if it has no such route."""
        if prompt.token_ids is not None:
            return prompt.token_ids
        body: dict[str, Any] = {"model": self._model}
        if prompt.messages is not None:
            body["messages"] = [{"role": m.role, "content": m.content} for m in prompt.messages]
        else:
            body["prompt"] = prompt.text
        return await self._token_ids(body)

    async def answer(self, ask: Ask) -> Answer:
        """One completion; ServerError with the server's own words if there is none."""
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": list(ask.prompt),
            "max_tokens": ask.max_tokens,
            "temperature": ask.temperature,
            "top_p": 1.0,
            "stream": ask.stream,
            "return_token_ids": True,
        }
        if ask.seed is not None:
            body["seed"] = ask.seed
        if ask.logprobs is not None:
            body |= {"logprobs": ask.logprobs, "return_tokens_as_token_ids": True}
        content = await self._post("/v1/completions", body)
        choices = _streamed(content) if ask.stream else [_choice(msgspec.json.decode(content))]
        return await self._read([choice for choice in choices if choice is not None], streamed=ask.stream)

    async def mark(self) -> None:
        """From here on counts `since_mark`."""
        self._before = await wait_idle(self._metrics)

    async def since_mark(self) -> Drafted:
        """What the speculative counters did since the mark, idle to idle."""
        after = await wait_idle(self._metrics)
        before = self._before or after
        found = delta(before, after, max(after.at_s - before.at_s, 0.0))
        return Drafted(found.drafts, found.draft_tokens, found.accepted_tokens, found.generation_tokens)

    async def _read(self, choices: list[dict[str, Any]], *, streamed: bool) -> Answer:
        ids: list[int] = []
        chunks: list[int] = []
        chosen: list[float] = []
        top: list[dict[int, float]] = []
        for choice in choices:
            new = choice.get("token_ids")
            if new is None:  # vLLM before 0.10.2 has no return_token_ids
                text = "".join(str(other.get("text", "")) for other in choices)
                return Answer(await self._token_ids({"prompt": text, "add_special_tokens": False}))
            ids += new
            chunks += [len(new)] if new else []
            said = choice.get("logprobs") or {}
            chosen += said.get("token_logprobs") or []
            top += [_by_id(row) for row in said.get("top_logprobs") or []]
        return Answer(tuple(ids), tuple(chunks) if streamed else (), tuple(chosen), tuple(top))

    async def _token_ids(self, body: dict[str, Any]) -> tuple[int, ...]:
        found = msgspec.json.decode(await self._post("/tokenize", {"model": self._model, **body}))
        return tuple(int(token) for token in found["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> bytes:
        try:
            response = await self._client.post(self._url + path, content=msgspec.json.encode(body))
        except httpx2.HTTPError as error:
            raise ServerError(
                f"{self._url}{path} broke off ({str(error) or type(error).__name__}); look into the server's log."
            ) from error
        if response.status_code != 200:
            cure = (
                "look into the server's log"
                if response.status_code >= 500
                else "the test needs a vLLM that takes token-id prompts and has /tokenize"
            )
            raise ServerError(f"{self._url}{path} answers {response.status_code} ({response.text[:300]}); {cure}.")
        return response.content


def _streamed(content: bytes) -> list[dict[str, Any] | None]:
    found: list[dict[str, Any] | None] = []
    for event in SseDecoder().feed(content, 0.0):
        if event.data.strip() == b"[DONE]":
            break
        reply = msgspec.json.decode(event.data)
        if reply.get("error"):
            raise ServerError(f"The server ended a stream with an error ({reply['error']}); look into its log.")
        found.append(_choice(reply))
    return found


def _choice(reply: dict[str, Any]) -> dict[str, Any] | None:
    choices = reply.get("choices") or []
    first: dict[str, Any] | None = choices[0] if choices else None
    return first


def _by_id(row: dict[str, float] | None) -> dict[int, float]:
    names = row or {}
    if any(not name.startswith(_ID_NAME) for name in names):
        raise ServerError(
            "The server names tokens in its log-probabilities by their text, not by their id; a vLLM of 0.6 or later "
            "is needed (return_tokens_as_token_ids)."
        )
    return {int(name.removeprefix(_ID_NAME)): value for name, value in names.items()}
