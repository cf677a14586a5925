"""The verdict's sentence says what, where and how sure."""

import json

from loadgen.analysis.lossless_greedy import judge_greedy
from loadgen.analysis.lossless_model import Arm, Divergence, Drafted, GreedyFinding, Place, SamplingFinding
from loadgen.analysis.lossless_sampling import judge_sampling
from loadgen.analysis.lossless_verdict import judge
from loadgen.report.lossless_json import LosslessAbout, lossless_json
from loadgen.report.lossless_text import lines, sentence
from loadgen.report.summary import dumps
from loadgen.store.model import ServerFacts
from loadgen.sweep.lossless_plan import LosslessPlan
from loadgen.sweep.lossless_seeds import Seeding

ENOUGH = Drafted(1000, 4000, 1500, 5000)


def greedy(*gaps: float | None, drafted: Drafted = ENOUGH) -> GreedyFinding:
    found = tuple(Divergence(f"p{i}", 1, 27, 3, 4, gap, gap, 5) for i, gap in enumerate(gaps))
    arm = Arm(1, 40, 40 - len(found), 2500, (27,) * len(found), found)
    return judge_greedy([arm], [Arm(32, 40, 40, 2500, (), ())], "16-bit", drafted, 1)


def sampling(other: dict[int, int], drafted: Drafted = ENOUGH) -> SamplingFinding:
    base = {1: 1200, 2: 300}
    places, control = [Place("p", 2, base, other)], [Place("p", 2, base, base)]
    return judge_sampling(places, control, drafted, temperature=0.8, samples=1500)


SAME = {1: 1190, 2: 310}


def test_the_same_quality_is_said_with_its_bounds() -> None:
    finding = judge("ngram", "baseline", greedy(0.05), [sampling(SAME)])

    assert sentence(finding) == (
        "ngram against baseline: same quality at temperature 0, 0 of 40 prompts leave the baseline beyond a near tie "
        "(95 % CI 0.0 % to 8.8 %); at temperature 0.8, no token distribution is more than 0.03 away at 95 % (margin "
        "0.1)."
    )
    shown = "\n".join(lines(finding))
    assert "39 of 40" in shown
    assert "80 % power" in shown
    assert "30 % of all" in shown


def test_a_difference_names_rate_interval_example_and_cause() -> None:
    finding = judge("ngram", "baseline", greedy(1.5, None), [sampling({1: 700, 2: 800})])
    said = sentence(finding)

    assert said.startswith(
        "ngram against baseline: differs at temperature 0, 2 of 40 prompts (95 % CI 0.6 % to 16.9 %)"
    )
    assert "outside the baseline's 20 likeliest" in said
    assert "verifying drafts" in said
    assert "at temperature 0.8, 33% of its tokens at position 2" in said
    assert any("in a drafted step" in line for line in lines(finding))


def test_not_tested_gives_the_cause_and_what_was_found_all_the_same() -> None:
    fault = Drafted(500, 2000, 0, 5000)
    finding = judge("ngram", "baseline", greedy(), [sampling(SAME, fault)])

    assert "not tested, for at temperature 0.8 not one token of 500 drafts was accepted" in sentence(finding)
    assert sentence(finding).endswith("(same quality at temperature 0).")


def about() -> LosslessAbout:
    plan = LosslessPlan("ngram", "baseline", 4, seeds=Seeding(False, "a reason"))
    facts = ("ngram", 0, "http://127.0.0.1:1", "m", "0.32.0", 1.0, ("vllm", "serve"), {"device": "cpu"})
    argv = ("lossless", "--profile", "ngram")
    servers = {"ngram": ServerFacts(*facts)}
    return LosslessAbout("run", "2026", "1", argv, "process", "asked", False, "code-edit", 64, plan, servers)


def test_json_holds_everything_and_no_number_that_json_lacks() -> None:
    finding = judge("ngram", "baseline", greedy(None, 2.0), [sampling(SAME)])
    content = json.loads(dumps(lossless_json(finding, about())))

    assert content["answer"] == sentence(finding)
    assert content["quality"] == "differs"
    assert content["greedy"]["hard_divergences"][0]["gap"] is None
    assert content["sampling"][0]["places"][0]["position"] == 2
