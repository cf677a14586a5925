"""The httpx2 client of a load run."""

import os
import ssl
import urllib.request
from collections.abc import Callable

import httpx2

from loadgen.errors import UsageError
from loadgen.load.foreign import ForeignTransport
from loadgen.load.request import base_url
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
