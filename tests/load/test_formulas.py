"""Part B of the public cases: counts and latency formulas."""

import json
import time
from typing import Any

import pytest

from loadgen.load.decode import Asked, decode
from loadgen.load.figures import length_drift, load_figures
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.replay import load_stream
from loadgen.load.shape import ClientHealth, ClosedLoop, LoadResult
from loadgen.load.summary import distribution
from loadgen.load.warmup import run_warmup
from loadgen.load.window import tokens_in_window, tokens_per_event


def record(
    times: tuple[float, ...] = (),
    tokens: int = 0,
    per_event: tuple[int, ...] | None = None,
    outcome: Outcome = Outcome.OK,
    start_s: float = 0.0,
    end_s: float | None = None,
    **more: Any,
) -> RequestRecord:
    return RequestRecord(
        prompt_id="p",
        worker=0,
        outcome=outcome,
        start_s=start_s,
        end_s=end_s if end_s is not None else (times[-1] if times else start_s),
        first_token_s=times[0] if times else None,
        last_token_s=times[-1] if times else None,
        output_tokens=tokens,
        chunk_times_s=times,
        chunk_tokens=per_event,
        **more,
    )


def result_of(records: list[RequestRecord], open_s: float, close_s: float) -> LoadResult:
    return LoadResult(
        records=tuple(records),
        window_open_s=open_s,
        window_close_s=close_s,
        output_tokens_in_window=sum(tokens_in_window(r, open_s, close_s) for r in records),
        requests_ended_in_window=0,
        health=ClientHealth(0.0, 0.0, 0.0, 0.0),
        outcomes={},
    )


def test_c22_the_servers_count_wins_over_the_text(chunks: Any) -> None:
    body = chunks.text(" " * 15) + chunks.fin("stop") + chunks.usage(4, 15) + chunks.done
    got = decode(load_stream([(1.0, body)], http=False), Asked("p"))
    assert (got.output_tokens, got.prompt_tokens, got.token_source) == (15, 4, "server")


def test_c23_prompt_count_is_the_servers(chunks: Any) -> None:
    body = chunks.text("x") + chunks.fin("stop") + chunks.usage(824, 1) + chunks.done
    assert decode(load_stream([(1.0, body)], http=False), Asked("p")).prompt_tokens == 824


def test_c24_no_tpot_for_one_token() -> None:
    single = record((0.08,), 1)
    assert single.tpot_s is None
    assert (single.ttft_s, single.e2e_s) == (0.08, 0.08)
    double = record((0.1, 0.2), 2)
    assert distribution([single.tpot_s, double.tpot_s]).n == 1


def test_c25_ttft_is_no_gap() -> None:
    assert record((0.50, 0.52, 0.54), 3).chunk_gaps_s == pytest.approx((0.02, 0.02))


def test_c26_several_tokens_per_chunk() -> None:
    fast = record((0.100, 0.130, 0.160, 0.190), 10, (1, 3, 4, 2))
    assert fast.tpot_s == pytest.approx(0.010)
    assert fast.chunk_gaps_s == pytest.approx((0.03, 0.03, 0.03))


def test_c27_first_chunk_with_many_tokens() -> None:
    times = (0.100, 0.120, 0.140, 0.160, 0.180, 0.200)
    got = record(times, 10, (5, 1, 1, 1, 1, 1))
    assert got.tpot_after_first_chunk_s == pytest.approx(0.020)
    assert got.tpot_s == pytest.approx(0.1 / 9)


def test_c28_e2e_ends_at_the_last_token(chunks: Any) -> None:
    reads = [(0.1, chunks.text("a")), (0.19, chunks.text("b")), (0.195, chunks.usage(3, 2)), (0.25, chunks.done)]
    got = decode(load_stream(reads, http=False), Asked("p"))
    assert (got.e2e_s, got.end_s) == (0.19, 0.25)


async def test_c29_the_wall_clock_does_not_matter(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time

    async def script(seen: Any, reply: Any) -> None:
        monkeypatch.setattr(time, "time", lambda: real() - 2.0)
        await reply.chunked(chunks.reply(2), gap_s=0.005)

    server = await start_server(script)
    (got,) = (await run_warmup(target_of(server), make_prompts(1), 1)).records
    assert got.ttft_s is not None
    assert 0.0 < got.ttft_s < 1.5
    assert got.e2e_s is not None
    assert got.ttft_s <= got.e2e_s < 1.5


def test_c30_delivered_length_counts() -> None:
    assert record((0.1, 0.9), 17).tpot_s == pytest.approx(0.05)


def test_c31_length_drift_between_arms() -> None:
    base = [record((0.1,), 256)] * 3
    spec = [record((0.1,), 190)] * 3
    drift = length_drift(base, spec)
    assert drift is not None
    assert drift == pytest.approx(-0.2578, abs=1e-4)
    assert abs(drift) > 0.05
    assert length_drift(base, []) is None


def test_c32_percentiles_of_few_samples() -> None:
    d = distribution([100, 110, 120, 130, 140, 150, 160, 170, 180, 5000])
    assert (d.n, d.p50, d.max) == (10, 145.0, 5000.0)
    assert d.p90 == pytest.approx(662)
    assert d.p99 == pytest.approx(4566.2)
    assert d.low_confidence_p99
    assert not distribution(range(100)).low_confidence_p99


def test_c33_percentiles_are_not_rounded() -> None:
    d = distribution([120, 130, 1455])
    assert d.max == 1455.0
    assert d.p50 == 130.0


async def test_c34_time_ends_at_the_last_token_not_at_the_headers(
    start_server: Any, chunks: Any, make_prompts: Any, target_of: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked([chunks.role(), chunks.text("x"), chunks.fin("stop"), chunks.done], gap_s=0.1)

    server = await start_server(script)
    (got,) = (await run_warmup(target_of(server), make_prompts(1), 1)).records
    assert got.e2e_s is not None
    assert got.e2e_s >= 0.2


def test_c36_nothing_is_never_a_number() -> None:
    empty = distribution([None, float("nan"), float("inf")])
    assert (empty.n, empty.mean, empty.p99) == (0, None, None)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    figures = load_figures(result_of([record((0.1,), 1)], 0.0, 1.0))
    text = json.dumps(figures, allow_nan=False)
    assert json.loads(text, parse_constant=refuse)["tpot_s"]["mean"] is None


def test_c42_fast_failures_stay_out_of_latency_and_throughput() -> None:
    good = [record((0.2,), 10, start_s=0.0)] * 6
    bad = [record(outcome=Outcome.INVALID_REQUEST, start_s=0.0, end_s=0.003)] * 4
    figures = load_figures(result_of([*good, *bad], 0.0, 1.0))
    assert figures["ttft_s"]["p50"] == pytest.approx(0.2)
    assert figures["ttft_s"]["n"] == 6
    assert figures["output_tokens_per_s"] == pytest.approx(60.0)


def test_c48_only_tokens_inside_the_window_count() -> None:
    straddles = record((1.0, 2.0, 3.0, 4.0), 7, (1, 2, 2, 2), start_s=0.5)
    assert tokens_in_window(straddles, 1.5, 3.5) == 4.0
    unknown = record((1.0, 2.0, 3.0, 4.0), 7, start_s=0.5)
    assert tokens_per_event(unknown) == [1.0, 2.0, 2.0, 2.0]
    assert tokens_in_window(unknown, 1.5, 3.5) == 4.0
    assert tokens_in_window(unknown, 0.0, 9.0) == 7.0
    assert tokens_in_window(unknown, 5.0, 9.0) == 0.0
    assert tokens_in_window(record(tokens=16, start_s=1.0, end_s=2.0), 1.5, 2.5) == 16.0
    assert sum(tokens_per_event(record((1.0, 2.0, 3.0), 2))) == pytest.approx(2.0)


def test_c49_a_request_from_before_the_window_has_no_ttft_in_it() -> None:
    early = record((34.0, 69.0, 71.0, 75.0), 4, start_s=20.0)
    inside = record((80.0, 81.0), 2, start_s=79.0)
    result = result_of([early, inside], 70.0, 100.0)
    figures = load_figures(result)
    assert figures["ttft_s"]["n"] == 1
    assert result.output_tokens_in_window == 4.0


def test_default_of_the_closed_loop_is_a_window() -> None:
    assert ClosedLoop(concurrency=4).window_s > 0
