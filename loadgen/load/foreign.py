"""Capture through any other httpx2 transport: a proxy's, a mock's. Correct, but stamped later than ours."""

import asyncio

import httpx2

from loadgen.clock import now_s
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.target import Timeouts
from loadgen.load.transport import Wire


class ForeignTransport(httpx2.AsyncBaseTransport):
    """Gives an inner transport the capture mode of `StampedTransport`; `Arrivals.coarse` tells that it did."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, its body already in `extensions["arrivals"]` if capture was asked for."""
        arrivals, limits = request.extensions.get("arrivals"), request.extensions.get("timeouts")
        if not isinstance(arrivals, Arrivals):
            return await self._inner.handle_async_request(request)
        limits = limits if isinstance(limits, Timeouts) else Timeouts()
        # the inner read limit holds before and after the first byte alike: only the looser of ours is safe
        read_s = (
            None if limits.first_byte_s is None or limits.idle_s is None else max(limits.first_byte_s, limits.idle_s)
        )
        request = _with_content(request)
        request.extensions["timeout"] = {"connect": limits.connect_s, "read": read_s, "write": None, "pool": None}
        arrivals.coarse, arrivals.attempts, arrivals.sent_s = True, 1, now_s()
        try:
            async with asyncio.timeout(limits.total_s):
                return await self._captured(request, arrivals)
        except TimeoutError:
            text = f"total timeout of {limits.total_s} s"
            arrivals.end(End.TOTAL_TIMEOUT, now_s(), text)
            raise httpx2.ReadTimeout(text, request=request) from None

    async def aclose(self) -> None:
        """Closes the inner transport."""
        await self._inner.aclose()

    async def _captured(self, request: httpx2.Request, arrivals: Arrivals) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        arrivals.status, arrivals.headers = response.status_code, list(response.headers.raw)
        arrivals.first_byte_s = now_s()
        try:
            async for block in response.aiter_raw():
                if block:
                    arrivals.add(now_s(), block)
        finally:
            await response.aclose()
        arrivals.end(End.COMPLETE, now_s())
        return httpx2.Response(
            response.status_code, headers=response.headers, extensions={**response.extensions, "arrivals": arrivals}
        )


def _with_content(request: httpx2.Request) -> httpx2.Request:
    """The request as httpx2 forms it, where only its bytes for the wire were given."""
    wire = request.extensions.get("wire")
    if not isinstance(wire, Wire):
        return request
    headers = request.headers.copy()
    headers.pop("content-length", None)  # of the empty content
    return httpx2.Request(
        request.method, request.url, headers=headers, content=wire.body, extensions=dict(request.extensions)
    )
