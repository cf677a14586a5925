"""Any httpx2 transport can be put in place of ours; what it is given is the whole request."""

import asyncio
import json
from typing import Any

import httpx2

from loadgen.load.arrivals import Arrivals
from loadgen.load.client import make_client
from loadgen.load.decode import decode
from loadgen.load.record import Outcome
from loadgen.load.request import prepare
from loadgen.load.sender import Sender
from loadgen.load.target import Target, Timeouts
from loadgen.workloads.base import Message, Prompt


async def test_any_other_transport_can_be_put_in(chunks: Any) -> None:
    got: list[httpx2.Request] = []

    async def slow() -> Any:
        for block in chunks.reply(3):
            await asyncio.sleep(0.01)
            yield block

    def answer(request: httpx2.Request) -> httpx2.Response:
        got.append(request)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=slow())

    async def one(target: Target, question: str) -> tuple[Any, Arrivals]:
        request = prepare(Prompt("p0", 16, messages=(Message("user", question),)), target)
        arrivals = Arrivals()
        await Sender(client, target).send(request, arrivals)
        return decode(arrivals, request.asked), arrivals

    target = Target("http://server.invalid", "m")
    async with make_client(target, lambda: httpx2.MockTransport(answer)) as client:
        for question in ("short", "a longer one"):
            record, arrivals = await one(target, question)
            assert (record.outcome, record.output_tokens) == (Outcome.OK, 3)
            assert arrivals.coarse
            assert json.loads(got[-1].content)["messages"][0]["content"] == question
            assert got[-1].headers["content-length"] == str(len(got[-1].content))
            assert got[-1].headers["accept-encoding"] == "identity"
        late = Target("http://server.invalid", "m", timeouts=Timeouts(total_s=0.02))
        record, _ = await one(late, "short")
        assert record.outcome is Outcome.TIMEOUT
