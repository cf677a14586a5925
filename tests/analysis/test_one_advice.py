"""An answer and what is to be set are one statement; what was not measured, or not to its end, is not to be set."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.analysis.findings import analyse
from loadgen.analysis.schedule_advice import unpriced
from loadgen.analysis.schedule_answer import best_k, load_range
from loadgen.analysis.verify_model import StaticGain
from loadgen.analysis.verify_pooled import pooled
from loadgen.commands.conclude import find_findings
from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"


def test_the_setting_has_the_load_range_of_the_headline() -> None:
    """ "No sure gain from 16 on" stood above "Set 3 ... 1 to 128"."""
    findings = find_findings(RunFolder(EXAMPLE))
    advice = findings.recommendation
    assert advice is not None
    assert "K = 3 up to 15 concurrent requests, no sure gain from 16 on" in findings.answer
    assert "use static K = 3 if fewer than 16 requests run at once" in findings.answer
    assert advice.when == "if fewer than 16 requests run at once"
    assert advice.beyond == "From 16 on there is no sure gain and no sure cost."
    assert "measured at 1 to 128 concurrent requests" in advice.holds_for


def test_a_cost_that_was_measured_again_moves_the_range_and_says_what_to_do() -> None:
    (ladder,) = find_findings(RunFolder(EXAMPLE)).ladders
    again = pooled([StaticGain(8, math.log(0.88), 0.01, 3), StaticGain(16, math.log(0.9), 0.01, 3)], ())
    when, beyond = load_range(ladder, again)
    first = int(when.removeprefix("if fewer than ").split()[0])
    assert first <= 8
    assert f"from {first} on" in best_k(ladder, again)
    assert beyond == (
        f"From {first} on it costs (0.88x at 8): serve that load from a second pool without speculation, or leave "
        "speculation out."
    )


def test_a_schedule_that_no_server_ran_is_a_candidate(run_of: Any, manifest: Any) -> None:
    findings = analyse(manifest(), run_of({1: 1.5, 8: 1.2, 16: 0.8, 32: 0.7}))
    advice = findings.recommendation
    assert advice is not None
    assert advice.candidate
    assert "make answer PROFILE=ngram measures that" in advice.why
    last = findings.conditions[0].profiles[0].break_even["output_tokens_per_s"].crossings[0].concurrency
    assert f"Safe until then: static K = 4 where at most {last:g} requests run at once, or two pools" in advice.why


def test_a_schedule_without_one_turn_downwards_names_its_spans() -> None:
    assert "static K = 4 from 9 on (requests in flight), no speculation elsewhere" in unpriced(
        "ngram", ((1, 8, 0), (9, 256, 4))
    )


def test_both_workloads_on_which_it_pays_are_named(cell: Any, manifest: Any) -> None:
    chat = Condition("chat", 512, 0.0)
    cells = []
    for condition in (Condition("code-edit", 512, 0.0), chat):
        for level in (1, 8, 32):
            for repeat in range(3):
                noise = 1 + 0.01 * (repeat - 1)
                cells.append(cell("baseline", level, repeat, 1000.0, condition=condition))
                cells.append(cell("ngram", level, repeat, 1300.0 * noise, condition=condition))
    plan = manifest()
    findings = analyse(replace(plan, conditions=(Condition("code-edit", 512, 0.0), chat), levels=(1, 8, 32)), cells)
    assert findings.recommendation is not None
    assert "code-edit" in findings.recommendation.holds_for
    assert "chat" in findings.recommendation.holds_for


def test_what_was_interrupted_or_rests_on_one_repeat_is_not_settled(cell: Any, manifest: Any) -> None:
    cells = [cell("baseline", level, 0, 1000.0) for level in (1, 4)]
    cells += [cell("ngram", level, 0, 800.0) for level in (1, 4)]
    findings = analyse(manifest(), cells, interrupted=True)
    assert findings.answer.startswith("interrupted, indicative: ngram shows no gain on code-edit (1 to 4 ")
    advice = findings.recommendation
    assert advice is not None
    assert advice.value is None
    assert "Interrupted: cells are missing. Indicative only: measure with three repeats." in advice.why
    assert "would have been 1" not in advice.why
