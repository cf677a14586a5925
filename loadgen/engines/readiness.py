"""Is a server ready? Port, `/health`, `/v1/models`, then a real completion with text.

vLLM says 200 before it can serve, and some configurations die at the first request (case C87).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from loadgen.clock import now_s
from loadgen.engines.credentials import masked
from loadgen.engines.server_info import ask_server_info
from loadgen.errors import ServerError

POLL_S = 0.1
REPORT_S = 10.0
_PROMPT = "Count: one, two, three,"
_TOKENS = 8

Report = Callable[[str, str], None]
"""(phase, detail)."""


@dataclass(frozen=True)
class Readiness:
    """What the server said of itself on the way."""

    model: str
    max_model_len: int | None
    version: str | None
    effective: Mapping[str, Any] = field(default_factory=dict)
    """Its configuration, if it is in dev mode."""


class Prober:
    """Asks one server until it has answered a real completion, or the time is over."""

    def __init__(self, url: str, *, headers: Mapping[str, str], timeout_s: float, report: Report) -> None:
        self._url = url
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._report = report
        self._phase = "port"
        self._last = "nothing has answered yet"

    async def until_ready(self) -> Readiness:
        """The server's facts; ServerError when the time is over or the server refuses for good."""
        ticker = asyncio.create_task(self._tick())
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._probe()
        except TimeoutError:
            raise ServerError(
                f"The server at {self._url} was not ready after {self._timeout_s:g} s (phase {self._phase}: "
                f"{self._last}); raise the limit with --start-timeout, or read its log."
            ) from None
        finally:
            ticker.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._report("waiting", f"{self._phase}: {self._last}")

    async def _probe(self) -> Readiness:
        # trust_env off: a proxy in the environment must not stand between us and this machine (case C58).
        async with httpx2.AsyncClient(
            base_url=self._url, headers=self._headers, trust_env=False, timeout=httpx2.Timeout(5.0)
        ) as client:
            await self._until("port", self._port_open)
            await self._until("health", lambda: self._healthy(client))
            model = await self._until("models", lambda: self._first_model(client))
            await self._until("completion", lambda: self._completion(client, str(model["id"])))
            length = model.get("max_model_len")
            return Readiness(
                model=str(model["id"]),
                max_model_len=length if isinstance(length, int) else None,
                version=await self._version(client),
                effective=await ask_server_info(client),
            )

    async def _until(self, phase: str, attempt: Callable[[], Any]) -> Any:
        """The attempt's result, once it gives one; None and transport errors mean: again."""
        self._phase, since = phase, now_s()
        while True:
            try:
                result = await attempt()
            except ConnectionRefusedError:
                result, self._last = None, "nobody listens yet"
            except (httpx2.RequestError, OSError) as error:
                result, self._last = None, f"{type(error).__name__} {error}".strip()
            if result is not None:
                self._report(phase, f"after {now_s() - since:.1f} s")
                return result
            await asyncio.sleep(POLL_S)

    async def _port_open(self) -> bool | None:
        address = urlsplit(self._url)
        default = 443 if address.scheme == "https" else 80
        _, writer = await asyncio.open_connection(address.hostname, address.port or default)
        writer.close()
        await writer.wait_closed()
        return True

    async def _healthy(self, client: httpx2.AsyncClient) -> bool | None:
        response = await client.get("/health")
        self._last = f"/health says {response.status_code}"
        # A gateway before a running server may have no such route; what counts is the completion below.
        return True if response.status_code in (200, 404) else None

    async def _first_model(self, client: httpx2.AsyncClient) -> dict[str, Any] | None:
        response = await client.get("/v1/models")
        self._last = f"/v1/models says {response.status_code}"
        self._refuse(response)
        if response.status_code != 200:
            return None
        models = _json(response).get("data")
        first = models[0] if isinstance(models, list) and models else None
        return first if isinstance(first, dict) and "id" in first else None

    async def _completion(self, client: httpx2.AsyncClient, model: str) -> bool | None:
        """True once text came back. Chat is tried where plain completions are missing or empty."""
        for path, body in _requests(model):
            # No limit on one answer but the whole start's: the first may compile for minutes.
            response = await client.post(path, json=body, timeout=httpx2.Timeout(None, connect=5.0))
            self._last = f"{path} says {response.status_code} {_excerpt(response)}".strip()
            if response.status_code == 404:
                continue
            self._refuse(response)
            if response.status_code != 200:
                return None
            if _text(_json(response)):
                return True
            self._last = f"{path} answers without text"
        return None

    async def _version(self, client: httpx2.AsyncClient) -> str | None:
        try:
            response = await client.get("/version")
        except httpx2.RequestError:
            return None
        version = _json(response).get("version") if response.status_code == 200 else None
        return str(version) if version else None

    def _refuse(self, response: httpx2.Response) -> None:
        """ServerError for an answer that waiting does not change; 408, 425, 429 and 5xx may pass."""
        if response.status_code in (401, 403):
            raise ServerError(
                f"The server at {self._url} wants an API key ({response.status_code}); set OPENAI_API_KEY."
            )
        if 400 <= response.status_code < 500 and response.status_code not in (404, 408, 425, 429):
            raise ServerError(
                f"The server at {self._url} refuses a plain completion ({response.status_code}: "
                f"{_excerpt(response)}); read its log."
            )


def _requests(model: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    common = {"model": model, "max_tokens": _TOKENS, "temperature": 0}
    return (
        ("/v1/completions", {**common, "prompt": _PROMPT, "ignore_eos": True}),
        ("/v1/chat/completions", {**common, "messages": [{"role": "user", "content": _PROMPT}]}),
    )


def _text(body: Mapping[str, Any]) -> bool:
    """True if the first choice holds text of any kind; blanks count, since a model may begin with them."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    message = choices[0].get("message")
    parts = message if isinstance(message, dict) else choices[0]
    return any(parts.get(name) for name in ("text", "content", "reasoning", "reasoning_content"))


def _json(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _excerpt(response: httpx2.Response) -> str:
    error = _json(response).get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return masked(" ".join(str(message or response.text).split()))[:160] if response.status_code != 200 else ""
