"""The simulated vLLM server: routes, requests in flight, and the engine behind them."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol
from urllib.parse import parse_qs
from uuid import uuid4

import msgspec

from loadgen.errors import UsageError
from loadgen.simulator.apiprocess import ApiTimes, Outbox
from loadgen.simulator.driver import Driver
from loadgen.simulator.errors import ApiError, engine_dead, invalid, malformed, status_error
from loadgen.simulator.faults import Fault
from loadgen.simulator.http import Connection, Exchange, HttpRequest
from loadgen.simulator.logprobs import LogprobSource
from loadgen.simulator.model import EngineCore, SimRequest, StepResult
from loadgen.simulator.openai import Generation, Parsed, parse_chat, parse_completion
from loadgen.simulator.protocol_models import DetokenizeBody, TokenizeBody, decode
from loadgen.simulator.server_info import server_info
from loadgen.simulator.serverspec import ServerSpec
from loadgen.simulator.stats import ServerStats
from loadgen.simulator.tokens import decode as detokenize
from loadgen.simulator.tokens import encode, render_chat

logger = logging.getLogger(__name__)

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BACKLOG = 2048
"""Connections that may wait to be accepted, as with uvicorn: a whole level connects at once."""
_json = msgspec.json.encode
_Route = Callable[[HttpRequest, Exchange], None]
Answers = Callable[[SimRequest], LogprobSource]
"""The probabilities of the answer that the core gives to a request."""
_Parser = Callable[[HttpRequest, ServerSpec, str], Parsed]


class ServedCore(EngineCore, Protocol):
    """An engine core whose prefix cache can be emptied."""

    def reset_prefix_cache(self) -> bool:
        """True if the cache is empty now, False while blocks are held."""


class SimulatorServer:
    """One server on one port: `start`, then `died` or `stop`. Not reusable."""

    def __init__(
        self, core: ServedCore, times: ApiTimes, answers: Answers, spec: ServerSpec, fault: Fault | None = None
    ) -> None:
        self.spec = spec
        self.stats = ServerStats(spec.model_id, spec.max_model_len, spec.num_speculative_tokens, spec.cache_config())
        self.died = asyncio.Event()
        """Set once the engine core has died; the process should then end with an error, as vLLM does."""
        self._core = core
        self._fault = fault
        self._driver = Driver(core, self)
        self._times = times
        self._answers = answers
        self._outbox = Outbox()
        self._live: dict[str, Generation] = {}
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._started_s = time.monotonic()
        self._completions = 0
        self._requests = 0
        self._routes: Mapping[str, tuple[str, _Route]] = {
            "/v1/completions": ("POST", self._completion_route(parse_completion)),
            "/v1/chat/completions": ("POST", self._completion_route(parse_chat)),
            "/v1/models": ("GET", self._models),
            "/health": ("GET", self._health),
            "/ping": ("GET", self._health),
            "/version": ("GET", self._version),
            "/metrics": ("GET", self._metrics),
            "/server_info": ("GET", self._server_info),
            "/load": ("GET", self._load),
            "/tokenize": ("POST", self._tokenize),
            "/detokenize": ("POST", self._detokenize),
            "/reset_prefix_cache": ("POST", self._reset_prefix_cache),
        }

    async def start(self, host: str, port: int) -> int:
        """Listens; returns the port (the one chosen for port 0). UsageError if it is taken."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._handle, self._connections), host, port, backlog=BACKLOG
            )
        except OSError as error:
            raise UsageError(f"Cannot listen on {host}:{port} ({error.strerror}); choose another --port.") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stops listening, ends the engine and all connections."""
        self._driver.stop()
        self._outbox.stop()
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.hang_up()
        # One turn of the loop, so that closed transports tell their protocols.
        await asyncio.sleep(0)

    @property
    def in_flight(self) -> int:
        """Requests that the engine has not finished."""
        return len(self._live)

    @property
    def core(self) -> EngineCore:
        """The engine core behind this server."""
        return self._core

    # --- from the engine

    def deliver(self, result: StepResult, begun_s: float, due_s: float) -> None:
        """One engine step's outputs, at their time."""
        self.stats.step(result, begun_s, due_s)
        for output in result.outputs:
            generation = self._live.get(output.request_id)
            if generation is None:
                continue
            if output.finish_reason is not None:
                del self._live[output.request_id]
            tokens = generation.take(output)
            ready_s = self._times.deliver(due_s, tokens) if tokens else due_s
            self.stats.delayed(ready_s - due_s)
            self._outbox.put(ready_s, partial(generation.send, output.new_token_ids, output.finish_reason))
        self._outbox.pump()

    def late(self, lateness_s: float) -> None:
        """The lateness of one delivery."""
        self.stats.late(lateness_s)

    def refused(self, request_id: str, reason: str) -> None:
        """The core cannot take a request: it is answered with the reason."""
        generation = self._live.pop(request_id, None)
        if generation is not None:
            self.stats.aborted(request_id)
            generation.fail(ApiError(reason))

    def engine_died(self) -> None:
        """Every request in flight fails, and every later one."""
        live = tuple(self._live.values())
        self._live.clear()
        for generation in live:
            generation.fail(engine_dead())
        self.died.set()

    # --- from clients

    def _handle(self, request: HttpRequest, exchange: Exchange) -> None:
        try:
            method, route = self._find(request)
            if request.method != method:
                error = status_error(405, "Method Not Allowed")
                exchange.respond(405, error.body, headers=(("allow", method),))
                return
            route(request, exchange)
        except ApiError as error:
            exchange.respond(error.code, error.body)
        except Exception:
            # A request must never take the connection's later ones with it; vLLM answers 500 as well.
            logger.exception("Request to %s failed.", request.path)
            exchange.respond(500, ApiError("Internal server error", kind="InternalServerError", code=500).body)

    def _find(self, request: HttpRequest) -> tuple[str, _Route]:
        route = self._routes.get(request.path)
        if route is None:
            raise status_error(404, "Not Found")
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "POST" and request.body and media_type != "application/json":
            raise malformed("Unsupported Media Type: Only 'application/json' is allowed")
        return route

    def _completion_route(self, parse: _Parser) -> _Route:
        def route(request: HttpRequest, exchange: Exchange) -> None:
            self._refuse_by_fault()
            self._requests += 1
            parsed = parse(request, self.spec, f"{self._requests}-{uuid4().hex[:8]}")
            if self._driver.dead:
                raise engine_dead()
            self._start(parsed, exchange)

        return route

    def _refuse_by_fault(self) -> None:
        if self._fault is None:
            return
        earlier, self._completions = self._completions, self._completions + 1
        error = self._fault.refusal(earlier, time.monotonic() - self._started_s)
        if error is not None:
            raise error
        if self._fault.kills_engine(earlier):
            self._driver.kill()

    def _start(self, parsed: Parsed, exchange: Exchange) -> None:
        now_s = time.monotonic()
        request = parsed.request
        answer = exchange if self._fault is None else self._fault.spoil(exchange)
        probabilities = None if parsed.logprobs is None else self._answers(request)
        generation = Generation(parsed, answer, self.spec, probabilities)
        self.stats.arrived(request.request_id, now_s, len(request.prompt_token_ids), request.max_tokens)
        self._live[request.request_id] = generation
        exchange.on_gone = lambda: self._abandon(request.request_id)
        exchange.on_drain = generation.flush
        generation.begin()
        self._driver.submit(request, self._times.accept(now_s))

    def _abandon(self, request_id: str) -> None:
        if self._live.pop(request_id, None) is not None:
            self._driver.abort(request_id)
            self.stats.aborted(request_id)

    # --- small routes

    def _models(self, _request: HttpRequest, exchange: Exchange) -> None:
        created = int(time.time())
        permission = {
            "id": f"modelperm-{uuid4().hex[:16]}",
            "object": "model_permission",
            "created": created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": self.spec.model_id,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": self.spec.root,
            "parent": None,
            "max_model_len": self.spec.max_model_len,
            "permission": [permission],
        }
        exchange.respond(200, _json({"object": "list", "data": [model]}))

    def _health(self, _request: HttpRequest, exchange: Exchange) -> None:
        exchange.respond(503 if self._driver.dead else 200, b"")

    def _version(self, _request: HttpRequest, exchange: Exchange) -> None:
        exchange.respond(200, _json({"version": self.spec.version}))

    def _metrics(self, _request: HttpRequest, exchange: Exchange) -> None:
        exchange.respond(200, self.stats.render(self._core.state()), METRICS_TYPE)

    def _server_info(self, request: HttpRequest, exchange: Exchange) -> None:
        wanted = parse_qs(request.query).get("config_format", ["text"])[0]
        if wanted not in ("text", "json"):
            raise malformed("config_format must be 'text' or 'json'")
        exchange.respond(200, _json(server_info(self.spec, as_json=wanted == "json")))

    def _load(self, _request: HttpRequest, exchange: Exchange) -> None:
        tracked = bool(self.spec.effective.get("enable_server_load_tracking"))
        exchange.respond(200, _json({"server_load": self.in_flight if tracked else 0}))

    def _tokenize(self, request: HttpRequest, exchange: Exchange) -> None:
        body = decode(request.body, TokenizeBody)
        if body.messages is not None:
            text = render_chat([(message.role, message.text) for message in body.messages])
        elif body.prompt is not None:
            text = body.prompt
        else:
            raise malformed("Object missing required field `prompt` or `messages`")
        tokens = encode(text)
        strings = [detokenize([token], skip_special=False) for token in tokens] if body.return_token_strs else None
        found = {
            "count": len(tokens),
            "max_model_len": self.spec.max_model_len,
            "tokens": tokens,
            "token_strs": strings,
        }
        exchange.respond(200, _json(found))

    def _detokenize(self, request: HttpRequest, exchange: Exchange) -> None:
        body = decode(request.body, DetokenizeBody)
        try:
            text = detokenize(body.tokens, skip_special=False)
        except ValueError as error:
            raise invalid(str(error), "tokens") from error
        exchange.respond(200, _json({"prompt": text}))

    def _reset_prefix_cache(self, _request: HttpRequest, exchange: Exchange) -> None:
        exchange.respond(200, _json({"success": self._core.reset_prefix_cache()}))
