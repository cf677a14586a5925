"""The httpx2 client of a load run, and one exchange through it."""

import functools
import os
import ssl
import urllib.request
from collections.abc import Callable

import httpx2

from loadgen.clock import now_s
from loadgen.errors import UsageError
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.foreign import ForeignTransport
from loadgen.load.request import PreparedRequest, base_url
from loadgen.load.target import Target
from loadgen.load.transport import StampedTransport

TransportFactory = Callable[[], httpx2.AsyncBaseTransport]


def make_client(target: Target, transport_factory: TransportFactory | None = None) -> httpx2.AsyncClient:
    """A client for one target. Sends `Accept-Encoding: identity` and the bearer token from the environment; uses no
    proxy unless asked (case C58). Raises UsageError for a URL or CA file that cannot be used.
    """
    headers = {
        "Accept-Encoding": "identity",
        "Accept": "text/event-stream, application/json",
        "Content-Type": "application/json",
        "User-Agent": "loadgen",
    }
    token = os.environ.get(target.api_key_variable)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    transport = transport_factory() if transport_factory else _transport(target)
    if not isinstance(transport, StampedTransport):
        transport = ForeignTransport(transport)
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=None, trust_env=False)


async def send(client: httpx2.AsyncClient, request: PreparedRequest, target: Target, arrivals: Arrivals) -> None:
    """Sends one request and gathers its response into `arrivals`; never raises for what the server or the network
    does. A cancellation is noted in `arrivals` and goes on.
    """
    arrivals.sent_s = now_s()
    # not client.build_request: it parses the URL and merges headers anew each time, half of a request's client cost
    wire = httpx2.Request(
        "POST",
        _parsed(request.url),
        headers=client.headers,
        content=request.body,
        extensions={"arrivals": arrivals, "timeouts": target.timeouts},
    )
    try:
        response = await client.send(wire, stream=True)
        await response.aclose()
    except httpx2.HTTPError as error:
        arrivals.end(_end_of(error), now_s(), str(error) or type(error).__name__)
    except BaseException as error:
        arrivals.end(End.CANCELLED, now_s(), type(error).__name__)
        raise


@functools.lru_cache(maxsize=64)
def _parsed(url: str) -> httpx2.URL:
    return httpx2.URL(url)


def _end_of(error: httpx2.HTTPError) -> End:
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return End.CONNECT_TIMEOUT
    if isinstance(error, httpx2.TimeoutException):
        return End.IDLE_TIMEOUT
    if isinstance(error, httpx2.ConnectError | httpx2.ProxyError | httpx2.UnsupportedProtocol):
        return End.CONNECT_FAILED
    return End.PROTOCOL if isinstance(error, httpx2.ProtocolError) else End.CLOSED


def _transport(target: Target) -> httpx2.AsyncBaseTransport:
    url = httpx2.URL(base_url(target.url))
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{target.url!r} is not a server's URL: give it as http://HOST:PORT.")
    context = _ssl_context(target) if url.scheme == "https" else None
    proxy = proxy_for(target)
    if proxy is None:
        return StampedTransport(context, target.timeouts)
    return httpx2.AsyncHTTPTransport(verify=context or True, proxy=proxy, trust_env=False)


def proxy_for(target: Target) -> str | None:
    """The proxy that the environment names for this target; None unless the target asks for proxies.

    Through a proxy httpx2's own transport does the work: correct, but its stamps are coarser than ours.
    """
    url = httpx2.URL(base_url(target.url))
    if not target.use_proxy_environment or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


def _ssl_context(target: Target) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=target.ca_file)
    except OSError as error:
        raise UsageError(f"The CA file {target.ca_file} cannot be used ({error}): give a PEM file.") from error
    if not target.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
