"""What holds for every built-in workload."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from loadgen.errors import UsageError
from loadgen.workloads.base import Prompt, PromptRequest, Sampling, TokenCounter
from loadgen.workloads.lengths import ratio_counter
from loadgen.workloads.registry import get_workload, list_workloads, prompts_sha256, workload_warnings

NAMES = [name for name, _ in list_workloads()]
TEXTS = [name for name in NAMES if name != "random"]
FIRST_BLOCK = 16
"""Characters: a token has at least one, so prompts that differ here differ in their first 16 tokens."""

Make = Callable[..., PromptRequest]
TextOf = Callable[[Prompt], str]


@pytest.mark.parametrize("name", NAMES)
def test_c52_no_two_requests_share_a_first_block(
    name: str, request_of: Make, count_tokens: TokenCounter, text_of: TextOf
) -> None:
    base = request_of()
    requests = [
        *(replace(base, level=level) for level in (1, 2, 4, 8, 16, 32)),
        *(replace(base, repeat=repeat) for repeat in (1, 2)),
        *(replace(base, purpose=purpose) for purpose in ("warmup", "probe")),
        replace(base, session=1),
        replace(base, seed=8),
        replace(base, input_tokens=450),
        replace(base, max_tokens=16),
    ]
    prompts = [prompt for request in requests for prompt in get_workload(name).prompts(request, count_tokens)]
    starts = {prompt.token_ids[:4] if prompt.token_ids else text_of(prompt)[:FIRST_BLOCK] for prompt in prompts}
    assert len(starts) == len(prompts) == 20 * len(requests)


def test_c52_no_two_workloads_share_a_first_block(
    request_of: Make, count_tokens: TokenCounter, text_of: TextOf
) -> None:
    prompts = [p for name in TEXTS for p in get_workload(name).prompts(request_of(), count_tokens)]
    assert len({text_of(prompt)[:FIRST_BLOCK] for prompt in prompts}) == len(prompts)


@pytest.mark.parametrize("name", NAMES)
def test_c51_warm_up_prompts_are_never_measured(
    name: str, request_of: Make, count_tokens: TokenCounter, text_of: TextOf
) -> None:
    workload = get_workload(name)
    warm_up = {text_of(prompt) for prompt in workload.prompts(request_of(purpose="warmup"), count_tokens)}
    measured = {text_of(prompt) for prompt in workload.prompts(request_of(count=200), count_tokens)}
    assert not warm_up & measured


def test_c53_prompts_are_the_same_bytes_in_another_process(request_of: Make, count_tokens: TokenCounter) -> None:
    here = [prompts_sha256(get_workload(name).prompts(request_of(), count_tokens)) for name in NAMES]
    script = (
        "from loadgen.workloads.base import PromptRequest\n"
        "from loadgen.workloads.lengths import ratio_counter\n"
        "from loadgen.workloads.registry import *\n"
        "request = PromptRequest(seed=7, level=8, repeat=0, count=20)\n"
        "for name, _ in list_workloads():\n"
        "    print(prompts_sha256(get_workload(name).prompts(request, ratio_counter(3.7))))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.split() == here
    assert len(set(here)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_longer_list_begins_like_a_shorter_one(name: str, request_of: Make, count_tokens: TokenCounter) -> None:
    workload = get_workload(name)
    longer = workload.prompts(request_of(count=30), count_tokens)
    assert longer[:10] == workload.prompts(request_of(count=10), count_tokens)
    assert len({prompt.prompt_id for prompt in longer}) == 30


@pytest.mark.parametrize("chars_per_token", [3.2, 3.9, 4.5])
@pytest.mark.parametrize("wanted", [None, 130, 512, 2000])
@pytest.mark.parametrize("name", TEXTS)
def test_prompts_have_the_wanted_length_within_5_percent(
    name: str, wanted: int | None, chars_per_token: float, request_of: Make, text_of: TextOf
) -> None:
    count = ratio_counter(chars_per_token)
    workload = get_workload(name)
    lengths = [count(text_of(p)) for p in workload.prompts(request_of(input_tokens=wanted), count)]
    if name == "mixed" and wanted is None:
        mean = sum(lengths) / len(lengths)
        assert 0.5 * workload.default_input_tokens < mean < 1.5 * workload.default_input_tokens
        return
    aim = wanted or workload.default_input_tokens
    assert all(abs(length - aim) <= 0.05 * aim for length in lengths)


def test_a_length_that_cannot_be_met_is_one_sentence(request_of: Make, count_tokens: TokenCounter) -> None:
    with pytest.raises(UsageError, match=r"cannot make a prompt of 20 tokens.*ask for"):
        get_workload("rag-quote").prompts(request_of(input_tokens=20), count_tokens)


@pytest.mark.parametrize("name", NAMES)
def test_caps_and_ids(name: str, request_of: Make, count_tokens: TokenCounter) -> None:
    workload = get_workload(name)
    (own,) = workload.prompts(request_of(count=1), count_tokens)
    (asked,) = workload.prompts(request_of(count=1, max_tokens=5, input_tokens=400, session=2), count_tokens)
    assert own.max_tokens in (workload.default_max_tokens, 192)
    assert asked.max_tokens == 5
    assert asked.prompt_id == f"{name}/400/L8/r0/s2/measure/0"


def test_a_counter_is_asked_a_few_times_a_prompt(request_of: Make) -> None:
    for name in TEXTS:
        asked: list[str] = []

        def count(text: str, asked: list[str] = asked) -> int:
            asked.append(text)
            return -(-len(text) * 10 // 37)

        get_workload(name).prompts(request_of(count=100), count)
        assert len(asked) < 100 * 12


def test_c56_sampling_is_explicit() -> None:
    sampling = Sampling()
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.ignore_eos) == (0.0, 1.0, 0, False)


def test_an_unknown_name_gets_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no workload 'chatt'.*code-edit, chat, rag-quote"):
        get_workload("chatt")


def test_every_workload_says_what_it_is() -> None:
    assert NAMES[:2] == ["code-edit", "chat"]
    assert len(set(NAMES)) == len(NAMES) == 10
    assert all(description for _, description in list_workloads())


def test_random_tokens_come_with_a_warning_and_an_exact_length(request_of: Make, count_tokens: TokenCounter) -> None:
    workload = get_workload("random")
    (warning,) = workload_warnings(workload)
    assert "acceptance" in warning
    prompts = workload.prompts(request_of(input_tokens=77), count_tokens)
    assert {len(prompt.token_ids or ()) for prompt in prompts} == {77}
    assert workload_warnings(get_workload("chat")) == ()


def test_the_hash_sees_order_text_and_cap(request_of: Make, count_tokens: TokenCounter) -> None:
    first, second = get_workload("chat").prompts(request_of(count=2), count_tokens)
    hashes = {
        prompts_sha256(prompts)
        for prompts in ([first, second], [second, first], [first], [first, replace(second, max_tokens=9)], [])
    }
    assert len(hashes) == 5
    assert prompts_sha256([first]) == prompts_sha256([replace(first, prompt_id="other")])
