"""One exchange after another through an httpx2 client, with as little work for each as can be."""

from dataclasses import dataclass, field

import httpx2

from loadgen.clock import now_s
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.request import PreparedRequest
from loadgen.load.target import Target
from loadgen.load.transport import Wire, head_bytes, route_of


@dataclass
class _Place:
    """What all requests to one URL share. Request objects are used again: only their extensions differ."""

    head: bytes
    route: tuple[str, str, int]
    free: list[httpx2.Request] = field(default_factory=list)


class Sender:
    """Sends prepared requests through `client`, whose transport is that of `make_client`."""

    def __init__(self, client: httpx2.AsyncClient, target: Target) -> None:
        self._client = client
        self._timeouts = target.timeouts
        self._places: dict[str, _Place] = {}

    async def send(self, request: PreparedRequest, arrivals: Arrivals) -> None:
        """Sends one request and gathers its response into `arrivals`; never raises for what the server or the network
        does. A cancellation is noted in `arrivals` and goes on.
        """
        arrivals.sent_s = now_s()
        try:
            await self._send(request, arrivals)
        except httpx2.HTTPError as error:
            arrivals.end(_end_of(error), now_s(), str(error) or type(error).__name__)
        except BaseException as error:
            arrivals.end(End.CANCELLED, now_s(), type(error).__name__)
            raise

    async def _send(self, request: PreparedRequest, arrivals: Arrivals) -> None:
        place = self._places.get(request.url) or self._new_place(request.url)
        carrier = place.free.pop() if place.free else self._carrier(request.url)
        body = request.body
        data = b"%bContent-Length: %d\r\n\r\n%b" % (place.head, len(body), body)
        carrier.extensions = {
            "arrivals": arrivals,
            "timeouts": self._timeouts,
            "timeout": {},  # ours stand above; without an entry httpx2 makes one for each request
            "wire": Wire(data, body, place.route),
        }
        try:
            response = await self._client.send(carrier, stream=True)
            await response.aclose()
        finally:
            carrier.extensions = {}
            place.free.append(carrier)

    def _new_place(self, url: str) -> _Place:
        model = self._carrier(url)
        place = _Place(head_bytes(model), route_of(model), [model])
        self._places[url] = place
        return place

    def _carrier(self, url: str) -> httpx2.Request:
        # not client.build_request, which would merge the client's base URL, cookies and parameters
        return httpx2.Request("POST", url, headers=self._client.headers)


def _end_of(error: httpx2.HTTPError) -> End:
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return End.CONNECT_TIMEOUT
    if isinstance(error, httpx2.TimeoutException):
        return End.IDLE_TIMEOUT
    if isinstance(error, httpx2.ConnectError | httpx2.ProxyError | httpx2.UnsupportedProtocol):
        return End.CONNECT_FAILED
    return End.PROTOCOL if isinstance(error, httpx2.ProtocolError) else End.CLOSED
