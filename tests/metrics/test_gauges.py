"""Gauges over a window."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from loadgen.metrics.gauges import GaugeWatcher, gauge_sample, not_numbers, summarise
from loadgen.metrics.model import GaugeSample
from loadgen.metrics.parse import Snapshot, parse
from loadgen.metrics.scrape import MetricsClient


def test_c69_nan_is_left_out_and_usage_is_never_summed() -> None:
    read = parse(
        'vllm:kv_cache_usage_perc{engine="0"} NaN\nvllm:kv_cache_usage_perc{engine="1"} 0.4\n'
        'vllm:kv_cache_usage_perc{engine="2"} 0.4\n'
    )
    assert gauge_sample(read).kv_cache_usage == 0.4
    assert not_numbers(read) == 1


def test_c61_requests_are_summed_over_engines() -> None:
    read = parse('vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="1"} 4\n')
    sample = gauge_sample(read)
    assert sample.running == 7
    assert sample.waiting is None


def test_gauges_of_a_capture(capture: Callable[[str], Snapshot]) -> None:
    sample = gauge_sample(capture("vllm-0.26.0-h200/ngram-metrics-c8-before.txt"))
    assert (sample.running, sample.waiting) == (8, 0)
    assert sample.kv_cache_usage == pytest.approx(0.013218884120171692)


def test_a_summary_takes_the_window_alone() -> None:
    samples = [
        GaugeSample(at, run, 0, use, 0.01 * at) for at, run, use in ((1, 99, 0.9), (2, 8, 0.1), (3, 6, 0.3), (9, 1, 1))
    ]
    summary = summarise(samples, (2, 3))
    assert summary.n == 2
    assert (summary.running_mean, summary.running_max) == (7, 8)
    assert summary.kv_cache_usage_max == 0.3
    assert summary.scrape_p50_s == pytest.approx(0.025)
    assert summary.scrape_max_s == pytest.approx(0.03)


def test_c82_no_samples_give_nothing() -> None:
    summary = summarise([], (0, 1))
    assert summary.n == 0
    assert summary.running_mean is None
    assert summary.scrape_max_s is None


async def test_the_watcher_collects_until_its_block_ends(server: Any) -> None:
    server.body("vllm:num_requests_running 3\nvllm:kv_cache_usage_perc NaN\n")
    third = asyncio.Event()
    seen: list[GaugeSample] = []

    def note(sample: GaugeSample) -> None:
        seen.append(sample)
        if len(seen) == 3:
            third.set()

    async with asyncio.timeout(60), MetricsClient(server.url) as client:
        async with GaugeWatcher(client, interval_s=0.005, on_sample=note) as watcher:
            await third.wait()
        asked = len(server.asked)
        await asyncio.sleep(0.02)
    assert len(server.asked) == asked
    assert watcher.samples == seen
    assert {sample.running for sample in seen} == {3}
    assert watcher.not_numbers == len(seen)


async def test_the_watcher_counts_failures_and_goes_on(server: Any) -> None:
    server.answers["/metrics"] = [(500, {}, ""), (500, {}, ""), (200, {}, "vllm:num_requests_running 3\n")]
    got = asyncio.Event()
    async with (
        asyncio.timeout(60),
        MetricsClient(server.url) as client,
        GaugeWatcher(client, interval_s=0.005, on_sample=lambda _: got.set()) as watcher,
    ):
        await got.wait()
    assert watcher.failed == 2


async def test_a_listener_that_fails_is_not_hidden(server: Any) -> None:
    server.body("vllm:num_requests_running 3\n")
    called = asyncio.Event()

    def fail(sample: GaugeSample) -> None:
        called.set()
        raise LookupError("listener")

    async def watch() -> None:
        async with MetricsClient(server.url) as client, GaugeWatcher(client, on_sample=fail):
            await called.wait()
            await asyncio.sleep(0)

    with pytest.raises(LookupError, match="listener"):
        await watch()
