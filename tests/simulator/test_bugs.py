"""Planted bugs do what they say, and nothing else."""

from collections import Counter

import pytest

from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.simulator.bugs import KINDS, Bug, with_bug
from loadgen.simulator.config import EngineConfig, engine_config
from loadgen.simulator.launch import LaunchOptions, launch
from loadgen.simulator.text import Continuation, TextModel
from loadgen.simulator.tokens import encode, render_chat
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload

NGRAM = engine_config(load_profile("ngram"))
EAGLE = engine_config(load_profile("eagle"))


def question() -> tuple[int, ...]:
    wanted = PromptRequest(seed=3, level=1, repeat=0, count=1, input_tokens=200, max_tokens=64)
    prompt = get_workload("code-edit").prompts(wanted, ratio_counter(4.0))[0]
    return tuple(encode(render_chat([(m.role, m.content) for m in prompt.messages or ()])))


def spoilt(bug: str, config: EngineConfig, temperature: float = 0.0, seed: int | None = None) -> Continuation:
    model = TextModel()
    answer = model.continuation(question(), temperature=temperature, seed=seed)
    return with_bug(model, answer, config, Bug.parse(bug), 48)


@pytest.mark.parametrize("config", [NGRAM, EAGLE], ids=["ngram", "eagle"])
@pytest.mark.parametrize("bug", ["bonus-shift", "accept-wrong:0.5"])
def test_greedy_answers_change_after_a_draft(bug: str, config: EngineConfig) -> None:
    right = TextModel().continuation(question()).tokens[:48]
    wrong = spoilt(bug, config).tokens[:48]

    assert wrong != right
    assert wrong[0] == right[0]  # the first token never comes from a draft


@pytest.mark.parametrize("bug", ["draft-temperature", "no-residual"])
def test_sampling_bugs_leave_greedy_answers_alone(bug: str) -> None:
    assert spoilt(bug, NGRAM).tokens == TextModel().continuation(question()).tokens


@pytest.mark.parametrize("bug", list(KINDS))
def test_a_server_without_drafts_has_no_such_bug(bug: str) -> None:
    baseline = engine_config(load_profile("baseline"))

    assert spoilt(bug, baseline, 0.8, 5).tokens == TextModel().continuation(question(), temperature=0.8, seed=5).tokens


@pytest.mark.parametrize("bug", list(KINDS))
def test_a_bug_is_the_same_each_time(bug: str) -> None:
    assert spoilt(bug, NGRAM, 0.8, 4).tokens == spoilt(bug, NGRAM, 0.8, 4).tokens


def test_without_the_residual_a_rejected_draft_comes_back_too_often() -> None:
    # The draft token then has p + (1 - p) p instead of p: a rejected one may be drawn again (Leviathan et al. 2023).
    model, ids = TextModel(), question()
    clean = [model.continuation(ids, temperature=1.0, seed=seed) for seed in range(800)]
    bugged = [with_bug(model, answer, NGRAM, Bug.parse("no-residual"), 16) for answer in clean]
    gains = []
    for at in range(1, 16):
        before, after = (Counter(answer.tokens[at] for answer in arm) for arm in (clean, bugged))
        token = max(after, key=lambda t: after[t] - before[t])
        gains.append((after[token] - before[token], before[token] / 800))
    gain, p = max(gains)

    assert 0 < gain <= 1.2 * p * (1 - p) * 800
    assert gain > 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no-such", "choose one of"),
        ("bonus-shift:x", "no number"),
        ("accept-wrong:1.5", "out of range"),
        ("draft-temperature:0", "out of range"),
    ],
)
def test_a_bug_that_is_unknown_or_out_of_range_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Bug.parse(text)


def test_suffix_decoding_takes_no_planted_bug() -> None:
    with pytest.raises(UsageError, match="one request"):
        launch(load_profile("suffix"), LaunchOptions(bug="bonus-shift"))
