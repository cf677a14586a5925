"""Fetches `/metrics`."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx2

from loadgen.clock import now_s
from loadgen.errors import ServerError
from loadgen.metrics import names
from loadgen.metrics.parse import Sample, Snapshot, parse

_MAX_REDIRECTS = 3
# Plain text, since vLLM's body is not valid OpenMetrics; uncompressed, since gzip costs the server that we measure.
_HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"}


class MetricsClient:
    """Scrapes one server over its own connection, apart from the load's. Proxies of the environment are not used."""

    def __init__(self, url: str, timeout_s: float = 10.0, verify_tls: bool = True) -> None:
        """`url` is the server's base URL, or the full address of its metrics."""
        self.url = url.rstrip("/") if urlsplit(url).path.endswith("/metrics") else f"{url.rstrip('/')}/metrics"
        self._warnings: tuple[str, ...] = ()
        self._timeout_s = timeout_s
        self._http = httpx2.AsyncClient(
            headers=_HEADERS, timeout=timeout_s, trust_env=False, verify=verify_tls, follow_redirects=False
        )

    async def scrape(self, only: Collection[str] | None = None) -> Snapshot:
        """A snapshot with its body, seconds and time; ServerError if the server cannot be reached or fails.

        An empty body or a missing page gives a snapshot without samples and with a warning: the run goes on without
        server-side figures. A redirect is followed once and remembered, with a warning. With `only`, other names are
        not read.
        """
        started = now_s()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._get()
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise ServerError(
                f"{self.url} did not answer within {self._timeout_s:g} s; its API process is overloaded or stuck"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ServerError(
                f"{self.url} cannot be read ({str(error) or type(error).__name__}); is the server up?"
            ) from error
        ended = now_s()
        if response.status_code >= 500:
            raise ServerError(f"{self.url} answers {response.status_code}; look into the server's log")
        if response.status_code != 200:
            missing = f"{self.url} answers {response.status_code}, so server-side figures are not available"
            return Snapshot({}, (*self._warnings, missing), response.content, ended - started, ended)
        read = parse(response.content, response.headers.get("content-type"), only)
        return replace(read, warnings=(*self._warnings, *read.warnings), seconds=ended - started, at_s=ended)

    async def _get(self) -> httpx2.Response:
        """The answer behind at most three redirects; the address that answered is kept for the next time."""
        asked = self.url
        for _ in range(_MAX_REDIRECTS):
            response = await self._http.get(self.url)
            if response.next_request is None:
                return response
            self.url = str(response.next_request.url)
            self._warnings = (
                f"{asked} redirects to {self.url}; give Prometheus that address too, or it reads nothing",
            )
        raise ServerError(f"{asked} redirects more than {_MAX_REDIRECTS} times; give the address of its metrics itself")

    async def close(self) -> None:
        """Closes the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def wait_idle(client: MetricsClient, timeout_s: float = 30.0, interval_s: float = 0.1) -> Snapshot:
    """The first of two equal snapshots with nothing running or waiting: all counters have then been brought up to date.

    vLLM counts a step's tokens after it has sent them, so a scrape right after the last answer comes too early. When
    the time is up, the last snapshot comes back with a warning: other traffic, or a request that hangs.
    """
    deadline = now_s() + timeout_s
    last = await client.scrape()
    while True:
        if now_s() >= deadline:
            late = f"the server was not idle within {timeout_s:g} s; other traffic or a hanging request spoils its sums"
            return replace(last, warnings=(*last.warnings, late))
        await asyncio.sleep(interval_s)
        current = await client.scrape()
        if _is_idle(current) and _vllm_rows(current) == _vllm_rows(last):
            return current
        last = current


def is_simulated(snapshot: Snapshot) -> bool:
    """True if loadgen's simulator gave it: it tells itself, whatever URL or image it stands behind."""
    return any(sample.startswith("loadgen_sim_") for sample in snapshot.samples)


def _is_idle(snapshot: Snapshot) -> bool:
    busy = (snapshot.find(*names.RUNNING), snapshot.find(*names.WAITING))
    return not any(sample.value > 0 for samples in busy for sample in samples or ())


def _vllm_rows(snapshot: Snapshot) -> dict[str, tuple[Sample, ...]]:
    """What vLLM says of itself; the process' own CPU seconds and the HTTP counters grow with every scrape."""
    return {name: samples for name, samples in snapshot.samples.items() if name.startswith("vllm:")}
