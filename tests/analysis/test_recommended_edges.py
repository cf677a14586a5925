"""A recommended schedule's edges on both axes, and none where no schedule is advised."""

from dataclasses import replace

from loadgen.analysis.model import Recommendation, ScheduleEdges
from loadgen.analysis.recommendation_advice import Advice, schedule_edges
from loadgen.analysis.schedule import Choice
from loadgen.store.model import Condition

CODE = Condition("code-edit", 300, 0.0)
ADVICE = Advice(
    recommendation=Recommendation("num_speculative_tokens_per_batch_size", [], "", None, ""),
    choice=Choice.SCHEDULE,
    profile="ngram",
    condition=CODE,
    static_k=4,
    ranges=((1, 4, 4), (5, 11, 2), (12, 256, 0)),
    in_flight=((1, 5, 4), (6, 12, 2), (13, 256, 0)),
)


def test_each_edge_has_its_place_on_both_axes() -> None:
    assert schedule_edges(ADVICE) == ScheduleEdges("ngram", CODE, ((4, 5), (11, 12)))


def test_only_an_advised_schedule_has_edges() -> None:
    for choice in (Choice.STATIC, Choice.NONE, Choice.TWO_POOLS):
        assert schedule_edges(replace(ADVICE, choice=choice)) is None


def test_ranges_that_were_merged_on_one_axis_have_no_map() -> None:
    assert schedule_edges(replace(ADVICE, ranges=((1, 11, 4), (12, 256, 0)))) is None
