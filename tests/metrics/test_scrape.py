"""Fetching `/metrics` from a real socket."""

import asyncio
import socket
from typing import Any

import pytest

from loadgen.errors import ServerError
from loadgen.metrics import names
from loadgen.metrics.scrape import MetricsClient, wait_idle

IDLE = "vllm:num_requests_running 0\nvllm:generation_tokens_total {}\n"
BUSY = "vllm:num_requests_running 2\nvllm:generation_tokens_total {}\n"


async def test_a_scrape_has_samples_body_and_seconds(server: Any) -> None:
    server.body(IDLE.format(7))
    async with MetricsClient(server.url) as client:
        first = await client.scrape()
        second = await client.scrape(names.GAUGES)
    assert first.samples["vllm:generation_tokens_total"][0].value == 7
    assert first.body == IDLE.format(7).encode()
    assert 0 < first.seconds < first.at_s
    assert list(second.samples) == ["vllm:num_requests_running"]
    assert server.asked[0][1]["accept-encoding"] == "identity"


async def test_c58_proxies_of_the_environment_are_not_used(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server.body(IDLE.format(7))
    async with MetricsClient(server.url) as client:
        assert (await client.scrape()).available


async def test_c71_an_empty_page_is_a_warning(server: Any) -> None:
    server.body("")
    async with MetricsClient(server.url) as client:
        read = await client.scrape()
    assert not read.available
    assert "not available" in read.warnings[0]


async def test_a_missing_page_is_a_warning(server: Any) -> None:
    async with MetricsClient(server.url) as client:
        read = await client.scrape()
    assert read.samples == {}
    assert "404" in read.warnings[0]


async def test_c72_a_redirect_is_followed_with_a_warning_and_remembered(server: Any) -> None:
    server.answers["/metrics"] = [(307, {"Location": "/metrics/"}, "")]
    server.body(IDLE.format(7), path="/metrics/")
    async with MetricsClient(server.url) as client:
        first, second = await client.scrape(), await client.scrape()
    assert first.available
    assert "redirects to" in first.warnings[0]
    assert second.warnings == first.warnings
    assert [path for path, _ in server.asked] == ["/metrics", "/metrics/", "/metrics/"]


async def test_c72_a_circle_of_redirects_ends(server: Any) -> None:
    server.answers["/metrics"] = [(307, {"Location": "/metrics"}, "")]
    async with MetricsClient(server.url) as client:
        with pytest.raises(ServerError, match="redirects more than"):
            await client.scrape()


async def test_a_failing_server_is_one_sentence(server: Any) -> None:
    server.answers["/metrics"] = [(500, {}, "boom")]
    async with MetricsClient(server.url) as client:
        with pytest.raises(ServerError, match="answers 500"):
            await client.scrape()


async def test_a_silent_server_is_one_sentence(server: Any) -> None:
    server.silent = True
    async with MetricsClient(server.url, timeout_s=0.05) as client:
        with pytest.raises(ServerError, match="did not answer within"):
            await client.scrape()


async def test_no_server_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with MetricsClient(url) as client:
            with pytest.raises(ServerError, match="is the server up"):
                await client.scrape()


async def test_wait_idle_waits_for_two_equal_idle_scrapes(server: Any) -> None:
    server.body(BUSY.format(5), BUSY.format(9), IDLE.format(9), IDLE.format(11), IDLE.format(11))
    async with MetricsClient(server.url) as client:
        read = await wait_idle(client, interval_s=0.001)
    assert read.samples["vllm:generation_tokens_total"][0].value == 11
    assert len(server.asked) == 5
    assert read.warnings == ()


async def test_wait_idle_looks_at_vllms_rows_only(server: Any) -> None:
    server.body(*(IDLE.format(3) + f"process_cpu_seconds_total {n}\n" for n in range(5)))
    async with MetricsClient(server.url) as client:
        await wait_idle(client, interval_s=0.001)
    assert len(server.asked) == 2


async def test_wait_idle_gives_up_with_a_warning(server: Any) -> None:
    server.body(BUSY.format(5))
    async with asyncio.timeout(60), MetricsClient(server.url) as client:
        read = await wait_idle(client, timeout_s=0.05, interval_s=0.005)
    assert "not idle" in read.warnings[-1]
