"""Whatever was measured: a schedule is one that vLLM takes, without gaps, and never costs surely where it is used."""

import itertools
import math
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.analysis.capability import SCHEDULE, TWO_POOLS
from loadgen.analysis.schedule import Schedule, make_schedule, noise
from loadgen.analysis.schedule_advice import STATIC, recommend_schedule
from loadgen.analysis.schedule_edges import Rung, whole_batch
from loadgen.profiles.model import BatchSchedule
from loadgen.profiles.schedule import parse_schedule

Ladder = Mapping[int, tuple[Rung, ...]]
LEVELS = st.lists(st.sampled_from([1, 2, 3, 4, 7, 8, 13, 16, 32, 100, 256, 512, 4096]), min_size=1, unique=True)
SPEEDUP = st.one_of(st.sampled_from([0.5, 0.95, 1.0, 1.01, 1.3]), st.floats(0.2, 3.0))
ERROR = st.sampled_from([None, 0.001, 0.005, 0.05])
SHARE = st.one_of(st.none(), st.sampled_from([0.1, 0.4, 0.75, 1.0]))


@st.composite
def ladders(draw: st.DrawFn, ks: tuple[int, ...], levels: tuple[int, ...]) -> Ladder:
    error, share = draw(ERROR), draw(SHARE)
    return {
        k: tuple(
            Rung(level, math.log(draw(SPEEDUP)), error, None if share is None else share * level) for level in levels
        )
        for k in ks
    }


@st.composite
def measured(draw: st.DrawFn) -> tuple[Ladder, Ladder | None]:
    """Static servers; and constant schedules beside them, or None."""
    levels = tuple(sorted(draw(LEVELS)))
    ks = tuple(sorted(draw(st.sets(st.sampled_from([1, 2, 4]), min_size=1))))
    static = draw(ladders(ks, levels))
    return static, draw(st.one_of(st.none(), ladders((0, *ks), levels)))


def k_at(ranges: BatchSchedule, place: int) -> int:
    return next((k for first, last, k in ranges if first <= place <= last), ranges[-1][2])


def sure_losses(curve: tuple[Rung, ...]) -> set[int]:
    return {
        rung.concurrency for rung in curve if rung.log_speedup < -noise(rung, Rung(rung.concurrency, 0.0, 0.0, None))
    }


def made(static: Ladder, constant: Ladder | None, max_num_seqs: int = 256) -> Schedule:
    found = make_schedule(constant or static, max_num_seqs=max_num_seqs, static=static if constant else None)
    assert found is not None
    return found


@settings(max_examples=150, deadline=None)
@given(both=measured(), max_num_seqs=st.sampled_from([1, 16, 256]))
def test_every_schedule_is_vllms_and_has_no_gap(both: tuple[Ladder, Ladder | None], max_num_seqs: int) -> None:
    found = made(*both, max_num_seqs)
    top = found.levels[-1].concurrency
    for ranges in (found.ranges, found.in_flight, found.pools, found.pools_in_flight):
        assert parse_schedule(ranges) == ranges
        assert ranges[0][0] == 1
        assert ranges[-1][1] >= max_num_seqs
        for (_, last, k), (first, _, next_k) in itertools.pairwise(ranges):
            assert (first, next_k != k) == (last + 1, True)
    assert min(found.in_flight[-1][1], found.pools_in_flight[-1][1]) >= top


@settings(max_examples=300, deadline=None)
@given(both=measured(), version=st.sampled_from(["0.32.0", "0.23.0"]))
def test_no_advice_costs_surely_at_a_load_that_it_covers(both: tuple[Ladder, Ladder | None], version: str) -> None:
    static, constant = both
    found = made(static, constant)
    advice = recommend_schedule(found, method="ngram", version=version, data_parallel=None, holds_for="x")
    if advice.setting == SCHEDULE:
        assert [list(entry) for entry in found.ranges] == advice.value
        curves = constant or static
        for level in found.levels:
            own = next(r.batch for r in curves.get(level.k, curves[max(curves)]) if r.concurrency == level.concurrency)
            k = k_at(found.ranges, whole_batch(level.concurrency if own is None else own))
            assert k == 0 or level.concurrency not in sure_losses(curves[k])
    elif advice.setting in (TWO_POOLS, STATIC):
        pools = found.pools_in_flight if advice.setting == TWO_POOLS else ((1, 1, found.static_k),)
        on = {level.concurrency for level in found.levels if k_at(pools, level.concurrency)}
        assert on
        assert not on & sure_losses(static[found.static_k])
