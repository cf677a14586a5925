"""A scripted engine core, a server around it on a free port, and a client that sees raw bytes."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadgen.simulator.faults import Fault
from loadgen.simulator.model import LoadState, SimRequest, StepOutput, StepResult
from loadgen.simulator.server import SimulatorServer
from loadgen.simulator.serverspec import ServerSpec
from loadgen.simulator.tokens import EOS, encode

CAPTURES = Path(__file__).resolve().parents[1] / "data" / "captures"
TEXT = "One two three. This is a common expression."


@dataclass
class ScriptedCore:
    """Every request gets the same text, `sizes` tokens a step over and over; every step takes `step_s`."""

    sizes: Sequence[int] = (1,)
    step_s: float = 0.002
    tokens: tuple[int, ...] = (*encode(TEXT), EOS)
    crash_at_step: int | None = None
    refuses: str | None = None
    steps: int = 0
    scheduled: list[int] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    added: list[SimRequest] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict)
    _turn: dict[str, int] = field(default_factory=dict)
    _live: dict[str, SimRequest] = field(default_factory=dict)

    def add(self, request: SimRequest, now_s: float) -> None:
        if self.refuses:
            raise ValueError(self.refuses)
        self.added.append(request)
        self._live[request.request_id] = request
        self._at[request.request_id] = self._turn[request.request_id] = 0

    def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)
        self._live.pop(request_id, None)

    def step(self, now_s: float) -> StepResult | None:
        if not self._live:
            return None
        self.steps += 1
        if self.crash_at_step == self.steps:
            raise AssertionError("scripted")
        self.begun.append(now_s)
        new = tuple(i for i in self._live if self._at[i] == 0)
        prompts = sum(len(self._live[i].prompt_token_ids) for i in new)
        self.scheduled.append(len(self._live))
        outputs = tuple(self._output(request) for request in tuple(self._live.values()))
        return StepResult(
            duration_s=self.step_s,
            outputs=outputs,
            scheduled_requests=len(outputs),
            scheduled_tokens=prompts + sum(len(o.new_token_ids) for o in outputs),
            prompt_tokens=prompts,
            draft_tokens_k=max(self.sizes) - 1,
            prefix_queries=prompts,
            admitted=new,
        )

    def _output(self, request: SimRequest) -> StepOutput:
        at, turn = self._at[request.request_id], self._turn[request.request_id]
        size = self.sizes[turn % len(self.sizes)] if turn else 1
        stream = self.tokens * (1 + request.max_tokens // len(self.tokens)) if request.ignore_eos else self.tokens
        room = min(size, request.max_tokens - at)
        new = stream[at : at + room]
        done = at + len(new)
        reason = "length" if done >= request.max_tokens else None
        if not request.ignore_eos and new and new[-1] == EOS:
            reason = "stop"
        self._at[request.request_id], self._turn[request.request_id] = done, turn + 1
        if reason:
            del self._live[request.request_id]
        drafted = max(self.sizes) - 1 if turn else 0
        accepted = len(new) - 1 if turn else 0
        return StepOutput(request.request_id, new, reason, first=turn == 0, drafted=drafted, accepted=accepted)

    def state(self) -> LoadState:
        return LoadState(running=len(self._live), waiting=0, kv_cache_usage=0.25 if self._live else 0.0)

    def reset_prefix_cache(self) -> bool:
        return not self._live


@dataclass
class ScriptedTimes:
    """An API process that takes the same time for everything."""

    cost_s: float = 0.0
    free_s: float = 0.0

    def accept(self, now_s: float) -> float:
        self.free_s = max(self.free_s, now_s) + self.cost_s
        return self.free_s

    def deliver(self, due_s: float, tokens: int) -> float:
        return self.accept(due_s)


@dataclass
class Flat:
    """The scripted token is the likeliest one everywhere; the others are the letters from A on."""

    tokens: tuple[int, ...]

    def top_logprobs(self, position: int, count: int) -> list[tuple[int, float]]:
        chosen = self.tokens[position % len(self.tokens)]
        return [(token, -0.5 - rank) for rank, token in enumerate((chosen, *range(81, 80 + count)))]

    def logprob(self, position: int, token: int) -> float:
        return dict(self.top_logprobs(position, 5)).get(token, -math.inf)


@dataclass
class Reply:
    """A whole HTTP answer, chunked framing undone; `chunks` are the chunks one by one."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: list[bytes]
    complete: bool = True

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON of every SSE event, `[DONE]` left out."""
        found = [line[6:] for line in self.body.split(b"\n") if line.startswith(b"data: ")]
        return [json.loads(data) for data in found if data != b"[DONE]"]


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """One answer off a connection; a cut body leaves `complete` False."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    status = int(head[0].split(" ")[1])
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    if headers.get("transfer-encoding") != "chunked":
        body = await reader.readexactly(int(headers["content-length"]))
        return Reply(status, headers, body, [body])
    chunks: list[bytes] = []
    try:
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return Reply(status, headers, b"".join(chunks), chunks, complete=False)
    return Reply(status, headers, b"".join(chunks), chunks)


def request_bytes(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: sim", f"content-length: {len(data)}"]
    lines += [f"{k}: {v}" for k, v in {"content-type": "application/json", **(headers or {})}.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


@dataclass
class Running:
    """A server under test and how to talk to it."""

    server: SimulatorServer
    core: Any
    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        reader, writer = await self.connect()
        try:
            writer.write(request_bytes(method, path, body, headers))
            return await asyncio.wait_for(read_reply(reader), 60)
        finally:
            writer.close()

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for a state of the server that no event announces; fails after 10 s."""
        deadline = asyncio.get_running_loop().time() + 10
        while not true():
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.001)

    async def chat(self, **body: Any) -> Reply:
        messages = [{"role": "user", "content": "Count to three."}]
        return await self.ask("POST", "/v1/chat/completions", {"messages": messages, "temperature": 0, **body})

    async def complete(self, **body: Any) -> Reply:
        return await self.ask("POST", "/v1/completions", {"prompt": "Count to three.", "temperature": 0, **body})


RunServer = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def captures() -> Path:
    return CAPTURES


@pytest.fixture
def sim_spec() -> ServerSpec:
    return ServerSpec(model_id="smollm2", root="/models/smollm2", max_model_len=2048, num_speculative_tokens=4)


@pytest.fixture
def scripted_core() -> type[ScriptedCore]:
    return ScriptedCore


@pytest.fixture
def http_request() -> Callable[..., bytes]:
    return request_bytes


@pytest.fixture
def http_reply() -> Callable[[asyncio.StreamReader], Any]:
    return read_reply


@pytest.fixture
def run_server(sim_spec: ServerSpec) -> RunServer:
    @asynccontextmanager
    async def run(
        core: Any = None, spec: ServerSpec | None = None, fault: str | None = None, api_s: float = 0.0
    ) -> AsyncIterator[Running]:
        engine = ScriptedCore() if core is None else core
        server = SimulatorServer(
            engine,
            ScriptedTimes(api_s),
            lambda request: Flat(engine.tokens),
            spec or sim_spec,
            Fault.parse(fault) if fault else None,
        )
        port = await server.start("127.0.0.1", 0)
        try:
            yield Running(server, engine, port)
        finally:
            await server.stop()

    return run
