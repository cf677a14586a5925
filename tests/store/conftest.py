from collections.abc import Callable

import pytest

from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution, distribution
from loadgen.metrics.model import CounterDelta, GaugeSummary, HistogramDelta
from loadgen.store.model import CellKey, CellResult, Condition

MakeCell = Callable[..., CellResult]


@pytest.fixture
def make_cell() -> MakeCell:
    def make(profile: str = "baseline", level: int = 1, repeat: int = 0, tokens_per_s: float = 100.0) -> CellResult:
        histogram = HistogramDelta(4.0, 0.4, ((0.1, 3.0), (float("inf"), 4.0)))
        delta = CounterDelta(2.0, generation_tokens=200.0, inter_token_latency=histogram)
        return CellResult(
            key=CellKey(profile, Condition("chat", 60, 0.0), level, repeat),
            order=0,
            started_at="2026-11-29T16:20:00.000Z",
            window_s=2.0,
            output_tokens_per_s=tokens_per_s,
            requests_per_s=1.0,
            outcomes={"ok": 2},
            ttft_s=distribution([0.1, 0.2]),
            tpot_s=Distribution(0),
            e2e_s=distribution([1.0]),
            chunk_gap_s=Distribution(0),
            output_tokens=distribution([10.0]),
            prompt_tokens=distribution([60.0]),
            client=ClientHealth(0.001, 0.1, 1.0, 0.0),
            window=delta,
            idle=None,
            gauges=GaugeSummary(0),
            client_tokens_total=20,
        )

    return make
