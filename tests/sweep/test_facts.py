from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClientHealth, LoadResult
from loadgen.metrics.model import GaugeSummary
from loadgen.store.model import CellKey, CellResult, Condition
from loadgen.sweep.facts import ServerSide, cell_result, tokens_per_bin

HEALTH = ClientHealth(0.001, 0.1, 2.0, 0.0)


def record(start: float, times: tuple[float, ...], tokens: int, outcome: Outcome = Outcome.OK) -> RequestRecord:
    return RequestRecord(
        prompt_id="p",
        worker=0,
        outcome=outcome,
        start_s=start,
        end_s=times[-1] + 0.01,
        first_token_s=times[0],
        last_token_s=times[-1],
        prompt_tokens=5,
        output_tokens=tokens,
        chunk_times_s=times,
    )


def facts(*records: RequestRecord) -> CellResult:
    load = LoadResult(records, 10.0, 12.0, 40.0, 2, HEALTH)
    key = CellKey("ngram", Condition("chat", 60, 0.0), 2, 0)
    side = ServerSide(None, None, GaugeSummary(0), None, 0)
    return cell_result(key, load, side, order=3, started_at="t", prompts_sha256="h")


def test_a_figure_counts_where_its_event_falls() -> None:
    before = record(9.0, (9.5, 10.5), 3)  # first token in the ramp, last in the window
    inside = record(10.5, (10.6, 11.0, 11.4), 5)
    after = record(11.5, (11.7, 12.5), 2)  # first token in the window, last in the drain
    found = facts(before, inside, after)
    assert found.ttft_s.n == 2
    assert found.tpot_s.n == 2
    assert found.e2e_s.n == 2
    assert found.requests_per_s == 1.0
    assert found.output_tokens_per_s == 20.0
    assert found.client_tokens_total == 10


def test_failed_requests_are_counted_and_in_no_latency() -> None:
    found = facts(record(10.1, (10.2, 10.4), 2), record(10.1, (10.2, 10.4), 2, Outcome.STREAM_ERROR))
    assert {name: n for name, n in found.outcomes.items() if n} == {"ok": 1, "stream_error": 1}
    assert "cancelled" in found.outcomes
    assert found.ttft_s.n == 1


def test_a_cell_without_a_good_request_has_no_numbers_that_pose_as_latency() -> None:
    found = facts(record(10.1, (10.2, 10.4), 2, Outcome.TIMEOUT))
    assert found.ttft_s.mean is None
    assert found.tpot_s.p99 is None


def test_tokens_are_spread_over_half_seconds_by_chunk() -> None:
    bins = tokens_per_bin([record(9.0, (9.9, 10.1, 10.6, 11.9), 7)], 10.0, 12.0)
    # The first event holds one token, the other three share six.
    assert bins == [2.0, 2.0, 0.0, 2.0]
