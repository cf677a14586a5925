"""The text follows from prompt, seed and position alone, and copies as the prompt asks."""

import math
import subprocess
import sys
from collections import Counter

import pytest

from loadgen.simulator.intent import read_intent
from loadgen.simulator.lookup import draft_table
from loadgen.simulator.text import ALTERNATIVES, TextModel
from loadgen.simulator.tokens import EOS, decode, encode, render_chat

SOURCE = "\n".join(
    f"def part_{i}(left, right):\n    total = left * {i} + right\n    if total > {i * 7}:\n        return total - {i}\n"
    f"    return total + offset_{i}\n"
    for i in range(8)
)


def ask(content: str) -> tuple[int, ...]:
    return tuple(encode(render_chat([("user", content)])))


def edit(tag: int) -> tuple[int, ...]:
    return ask(f"Task {tag}: rewrite this code with a small change.\n```python\n{SOURCE}```\n")


def chat(tag: int) -> tuple[int, ...]:
    return ask(f"Question {tag}: what should one think about before a long walk in the hills?")


def tokens_per_step(prompts: list[tuple[int, ...]]) -> float:
    model = TextModel()
    steps = tokens = 0
    for prompt in prompts:
        answer = model.continuation(prompt)
        table = draft_table(answer, 2, 5, 4)
        at = 1
        while at < answer.natural_length:
            at += 1 + table.accepted[at]
            steps += 1
        tokens += answer.natural_length - 1
    return tokens / steps


def test_the_same_prompt_gives_the_same_text_in_another_process() -> None:
    script = (
        "import sys; from loadgen.simulator.text import TextModel; from loadgen.simulator.tokens import encode;"
        f"print(TextModel().continuation(tuple({list(edit(1))!r})).tokens)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(TextModel().continuation(edit(1)).tokens)


def test_code_edit_reproduces_the_source_and_ends_with_it() -> None:
    answer = TextModel().continuation(edit(3))
    text = decode(answer.tokens)
    source_lines = set(SOURCE.splitlines())
    kept = sum(line in source_lines for line in text.splitlines())
    assert answer.tokens[-1] == EOS
    assert 0.7 < answer.natural_length / len(encode(SOURCE)) < 1.4
    assert 0.2 < kept / len(source_lines) < 0.98


def test_lookup_gets_much_from_code_edit_and_little_from_chat() -> None:
    assert 1.9 < tokens_per_step([edit(i) for i in range(60)]) < 3.3
    assert 1.02 < tokens_per_step([chat(i) for i in range(200)]) < 1.35


def test_chat_ends_by_itself_after_about_a_hundred_tokens() -> None:
    model = TextModel()
    lengths = [model.continuation(chat(i)).natural_length for i in range(300)]
    assert 85 < sum(lengths) / len(lengths) < 115
    assert len(set(lengths)) > 50


def test_temperature_zero_ignores_the_seed_and_above_zero_does_not() -> None:
    model = TextModel()
    assert model.continuation(edit(1), seed=1).tokens == model.continuation(edit(1), seed=2).tokens
    warm = [model.continuation(edit(1), temperature=0.8, seed=seed).tokens for seed in (1, 2)]
    assert warm[0] != warm[1]
    assert warm[0] == TextModel().continuation(edit(1), temperature=0.8, seed=1).tokens


def test_past_its_end_the_text_falls_into_a_loop() -> None:
    answer = TextModel().continuation(chat(5))
    end = answer.natural_length
    answer.ensure(end + 400)
    tail = answer.tokens[end : end + 400]
    assert EOS not in tail
    assert any(tail[:300] == tail[p : 300 + p] for p in range(1, 50))
    assert draft_table(answer, 2, 5, 4, until=end + 300).accepted[end + 200] == 4


def test_an_answer_that_has_begun_goes_on_from_there() -> None:
    model = TextModel()
    whole = model.continuation(edit(2))
    for cut in (1, 17, 60):
        rest = model.continuation(edit(2) + tuple(whole.tokens[:cut]))
        assert rest.tokens == whole.tokens[cut:]
        assert rest.top_logprobs(0, 5) == whole.top_logprobs(cut, 5)


def test_a_flip_takes_the_second_token_and_goes_on_consistently() -> None:
    model = TextModel()
    whole = model.continuation(edit(4))
    at = next(i for i in range(whole.natural_length) if whole.is_near_tie(i))
    turned = model.flipped(whole, at)
    assert turned.tokens[:at] == whole.tokens[:at]
    assert turned.tokens[at] == whole.alternative(at) != whole.tokens[at]
    asked_again = model.continuation(edit(4) + tuple(turned.tokens[: at + 1]))
    assert asked_again.tokens == turned.tokens[at + 1 :]
    (_, best), (_, second) = whole.top_logprobs(at, 2)
    assert best - second < 0.1


def test_log_probabilities_are_a_distribution() -> None:
    answer = TextModel().continuation(chat(1))
    for at in range(40):
        top = answer.top_logprobs(at, ALTERNATIVES + 1)
        assert len({token for token, _ in top}) == ALTERNATIVES + 1
        assert sum(math.exp(lp) for _, lp in top) == pytest.approx(1.0)
        assert top == sorted(top, key=lambda pair: -pair[1])
    assert answer.logprob(0, 10**9) == -math.inf


def test_sampling_follows_the_log_probabilities() -> None:
    model = TextModel(kept=4)
    base = model.continuation(chat(1))
    at = min(range(2, 30), key=base.gap)
    n = 2000
    seen = Counter(model.continuation(chat(1), temperature=1.0, seed=s).tokens[at] for s in range(n))
    for token, lp in base.top_logprobs(at, 3):
        p = math.exp(lp)
        assert abs(seen[token] / n - p) < 4 * math.sqrt(p * (1 - p) / n)


@pytest.mark.parametrize(
    ("instruction", "names"),
    [
        ("Rewrite the code", ["edit"]),
        ("Quote the sentences that matter", ["quote"]),
        ("Resume el pasaje y luego cita una frase", ["summarise", "quote"]),
        ("Translate it", ["translate"]),
        ("Who was there?", ["question"]),
    ],
)
def test_the_instruction_sets_how_much_is_copied(instruction: str, names: list[str]) -> None:
    text = render_chat([("user", f"{instruction}\n<passage>The boat came in at dawn.</passage>")])
    assert [part.name for part in read_intent(text).parts] == names
