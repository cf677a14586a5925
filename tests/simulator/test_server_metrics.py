"""`/metrics` has vLLM 0.32's families: order, types, HELP texts, labels, buckets, and what moves them."""

import asyncio
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.simulator.exposition import Histogram, labels_text
from loadgen.simulator.families import one_two_five

ROW = re.compile(r"^(?P<name>[\w:]+)(\{(?P<labels>.*)\})? (?P<value>\S+)$")


def families(text: str) -> list[tuple[str, str, str, list[str]]]:
    """(name, help, type, rows without their numbers) of every vllm:* family, in order."""
    found: list[tuple[str, str, str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            found.append((name, words, "", []))
        elif line.startswith("# TYPE "):
            name, words, _, rows = found[-1]
            found[-1] = (name, words, line.rsplit(" ", 1)[1], rows)
        else:
            found[-1][3].append(line.rsplit(" ", 1)[0])
    return [family for family in found if family[0].startswith("vllm:")]


def label_names(row: str) -> tuple[str, list[str]]:
    match = ROW.match(row + " 0")
    assert match
    return match["name"], re.findall(r'(\w+)="', match["labels"] or "")


def value(text: str, row: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith((row + " ", row + "{"))]
    return float(line.rsplit(" ", 1)[1])


@pytest.mark.parametrize(("folder", "k"), [("vllm-0.32.0-cpu-ngram", 4), ("vllm-0.32.0-cpu-baseline", 0)])
async def test_families_are_the_captured_ones(
    run_server: Any, sim_spec: Any, captures: Path, folder: str, k: int
) -> None:
    real = families((captures / folder / "metrics-after.txt").read_text())
    async with run_server(spec=dataclasses.replace(sim_spec, num_speculative_tokens=k)) as sim:
        reply = await sim.ask("GET", "/metrics")
    mine = families(reply.body.decode())
    assert [family[:3] for family in mine] == [family[:3] for family in real]
    for (name, _, _, rows), (_, _, _, real_rows) in zip(mine, real, strict=True):
        if name == "vllm:cache_config_info":
            assert [label_names(row) for row in rows] == [label_names(row) for row in real_rows]
        else:
            assert rows == real_rows
    assert ("spec_decode" in reply.body.decode()) == (k > 0)
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_process_rows_are_there(run_server: Any) -> None:
    async with run_server() as sim:
        text = (await sim.ask("GET", "/metrics")).body.decode()
    assert value(text, "process_resident_memory_bytes") > 0
    assert value(text, "python_info") == 1


async def test_counts_of_a_finished_request(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(sizes=(5, 3), step_s=0.004)) as sim:
        usage = (await sim.complete(max_tokens=12, ignore_eos=True)).json["usage"]
        one = (await sim.complete(max_tokens=1)).json["usage"]
        text = (await sim.ask("GET", "/metrics")).body.decode()
    prompts = usage["prompt_tokens"] + one["prompt_tokens"]
    # The first request: 1 token, then drafted steps that give 3, 5 and 3.
    assert value(text, "vllm:prompt_tokens_total") == prompts
    assert value(text, "vllm:generation_tokens_total") == 13
    assert value(text, "vllm:spec_decode_num_drafts_total") == 3
    assert value(text, "vllm:spec_decode_num_draft_tokens_total") == 12
    assert value(text, "vllm:spec_decode_num_accepted_tokens_total") == 8
    per_position = [
        value(
            text,
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="smollm2",position="{i}"}}',
        )
        for i in range(4)
    ]
    assert per_position == [3, 3, 1, 1]
    assert value(text, "vllm:iteration_tokens_total_count") == 5
    assert value(text, "vllm:iteration_tokens_total_sum") == prompts + 13
    assert value(text, "vllm:inter_token_latency_seconds_count") == 3
    assert value(text, "vllm:inter_token_latency_seconds_sum") == pytest.approx(0.012)
    assert value(text, "vllm:time_to_first_token_seconds_count") == 2
    assert value(text, "vllm:request_time_per_output_token_seconds_sum") == pytest.approx(0.012 / 11)
    assert value(text, "vllm:request_decode_time_seconds_sum") == pytest.approx(0.012)
    assert value(text, 'vllm:request_success_total{engine="0",finished_reason="length",model_name="smollm2"}') == 2
    assert value(text, "vllm:request_params_max_tokens_sum") == 13
    assert value(text, "vllm:request_generation_tokens_sum") == 13


async def test_c24_one_token_requests_are_recorded_as_zero(run_server: Any) -> None:
    async with run_server() as sim:
        await sim.complete(max_tokens=1)
        text = (await sim.ask("GET", "/metrics")).body.decode()
    assert value(text, "vllm:request_time_per_output_token_seconds_count") == 1
    assert value(text, "vllm:request_time_per_output_token_seconds_sum") == 0


async def test_gauges_show_the_engine(run_server: Any, scripted_core: Any) -> None:
    async with run_server(scripted_core(step_s=0.05)) as sim:
        task = asyncio.create_task(sim.complete(max_tokens=4, ignore_eos=True))
        await sim.until(lambda: sim.server.in_flight == 1)
        text = (await sim.ask("GET", "/metrics")).body.decode()
        await task
    assert value(text, "vllm:num_requests_running") == 1
    assert value(text, "vllm:kv_cache_usage_perc") == 0.25


async def test_lateness_is_exported(run_server: Any) -> None:
    async with run_server() as sim:
        await sim.complete(max_tokens=10, ignore_eos=True)
        text = (await sim.ask("GET", "/metrics")).body.decode()
    assert value(text, "loadgen_sim_lateness_seconds_count") == 10
    assert value(text, "loadgen_sim_steps_total") == 10


def test_buckets_hold_their_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for number in (0.5, 1.0, 1.5, 2.0, 2.5):
        histogram.observe(number)
    assert histogram.counts == [2, 2, 1]
    assert (histogram.count, histogram.total) == (5, 7.5)


def test_one_two_five_stops_at_the_limit() -> None:
    assert one_two_five(2048)[-1] == 2000
    assert one_two_five(5) == (1, 2, 5)


def test_label_values_are_escaped() -> None:
    assert labels_text({"b": 'x"y\\z\n', "a": "1"}) == '{a="1",b="x\\"y\\\\z\\n"}'
