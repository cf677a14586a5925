"""The client's sums against the server's."""

import pytest

from loadgen.metrics.model import CounterDelta, HistogramDelta
from loadgen.metrics.reconcile import ClientTotals, ReconcileRow, Reconciliation, reconcile


def server(tokens: float, first_tokens: float, ttft_sum_s: float = 1.0) -> CounterDelta:
    return CounterDelta(
        10.0,
        generation_tokens=tokens,
        prompt_tokens=3000,
        time_to_first_token=HistogramDelta(first_tokens, ttft_sum_s),
        requests_finished={"stop": 100, "abort": 0},
    )


def row(found: Reconciliation, start: str) -> ReconcileRow:
    return next(row for row in found.rows if row.name.startswith(start))


def test_c84_cancelled_requests_explain_the_difference() -> None:
    found = reconcile(ClientTotals(succeeded=100, cancelled=5, output_tokens=1000), server(1000, 105))
    requests = row(found, "requests")
    assert (requests.client, requests.server, requests.difference) == (100, 105, 5)
    assert "5 cancelled" in requests.explanation
    assert found.agrees


def test_c84_without_cancelled_requests_the_same_difference_is_other_traffic() -> None:
    found = reconcile(ClientTotals(succeeded=100, output_tokens=1000), server(1000, 105))
    assert not found.agrees
    assert "other traffic" in found.warnings[0]


def test_c84_fewer_on_the_server_is_never_explained() -> None:
    assert not reconcile(ClientTotals(succeeded=100, cancelled=5, output_tokens=1000), server(1000, 90)).agrees


@pytest.mark.parametrize(("tokens", "agrees"), [(1000, True), (1009, True), (1012, False), (989, False)])
def test_c85_tokens_within_one_percent(tokens: float, agrees: bool) -> None:
    found = reconcile(ClientTotals(succeeded=100, output_tokens=1000), server(tokens, 100))
    assert row(found, "output").agrees is agrees
    assert found.agrees is agrees


def test_c85_tokens_that_the_server_made_for_cancelled_requests() -> None:
    found = reconcile(ClientTotals(succeeded=95, cancelled=5, output_tokens=950), server(1000, 100))
    assert found.agrees


@pytest.mark.parametrize(("ttft_p50_s", "agrees"), [(0.012, True), (0.0126, False), (0.005, True)])
def test_c85_client_ttft_against_the_servers_mean(ttft_p50_s: float, agrees: bool) -> None:
    client = ClientTotals(succeeded=100, output_tokens=1000, ttft_p50_s=ttft_p50_s)
    found = reconcile(client, server(1000, 100, ttft_sum_s=1.0))
    ttft = row(found, "TTFT")
    assert (ttft.client, ttft.server) == (ttft_p50_s, 0.01)
    assert ttft.agrees is agrees


@pytest.mark.parametrize(("prompt_tokens", "cancelled", "agrees"), [(3000, 0, True), (2900, 0, False), (2900, 3, True)])
def test_prompt_tokens(prompt_tokens: int, cancelled: int, agrees: bool) -> None:
    client = ClientTotals(succeeded=100, cancelled=cancelled, output_tokens=1000, prompt_tokens=prompt_tokens)
    assert row(reconcile(client, server(1000, 100)), "prompt").agrees is agrees


def test_c71_a_server_that_tells_nothing_is_no_disagreement() -> None:
    found = reconcile(ClientTotals(succeeded=100, output_tokens=1000, ttft_p50_s=0.1), CounterDelta(10.0))
    assert found.agrees
    assert all(row.server is None and row.difference is None for row in found.rows)
