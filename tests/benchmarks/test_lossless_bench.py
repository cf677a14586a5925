"""The stated rates of `loadgen lossless` in small: correct servers pass, each planted bug is caught at every seed.

The long form is `python -m benchmarks.lossless.run`; its table stands in docs/method.md, part 8.
"""

from dataclasses import replace

import pytest

from benchmarks.lossless.run import Row, Score, scores, table
from benchmarks.lossless.virtual import Case, VirtualServer, prompts
from loadgen.analysis.lossless_model import Quality
from loadgen.sweep.lossless_client import Ask

GREEDY = Case(flips=0.5, prompts=6, max_tokens=40)
SAMPLED = Case(flips=0.5, prompts=4, max_tokens=40, temperatures=(0.8,), samples=250, prefixes=1, margin=0.4)
GREEDY_SEEDS, SAMPLED_SEEDS = 20, 10
KINDS = (
    Row("correct, greedy", GREEDY, 20, Quality.SAME),
    Row("correct, sampled", SAMPLED, 10, Quality.SAME),
    Row("bonus-shift", replace(GREEDY, prompts=4, bug="bonus-shift:0.5"), GREEDY_SEEDS, Quality.DIFFERS),
    Row("accept-wrong", replace(GREEDY, prompts=4, bug="accept-wrong:0.3"), GREEDY_SEEDS, Quality.DIFFERS),
    Row("draft-temperature", replace(SAMPLED, bug="draft-temperature:0.1"), SAMPLED_SEEDS, Quality.DIFFERS),
    Row("no-residual", replace(SAMPLED, bug="no-residual"), SAMPLED_SEEDS, Quality.DIFFERS),
)


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row.name)
def test_the_right_verdict_at_every_seed(row: Row) -> None:
    (found,) = scores([row])

    assert dict(found.said) == {row.wanted: row.tests}


async def test_the_short_way_to_a_baselines_answer_gives_the_engines() -> None:
    server = VirtualServer("baseline", flips=0.5, seed=3)
    tokens = await server.tokenize(prompts(GREEDY, 0)[0])

    for ask in (Ask(tokens, 400), Ask(tokens, 48), Ask(tokens, 6, temperature=0.8, seed=5)):
        assert server.said(ask) == [token for output in server.run(ask) for token in output.new_token_ids]


def test_the_table_says_how_often_each_verdict_came() -> None:
    row = Row("correct", GREEDY, 40, Quality.SAME)
    (found,) = scores([replace(row, tests=0)])
    found.said.update({Quality.SAME: 39, Quality.NOT_TESTED: 1})

    assert table([Score(row, found.said)]).splitlines()[-1] == "| correct | 40 | 39 | 0 | 1 | 86.8 to 99.9 % |"
