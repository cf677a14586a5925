"""Drawn lengths, and the lengths of recorded traces."""

import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.formats.traces import Arrival, read_trace
from loadgen.workloads.lengths import LengthDistribution, parse_lengths, ratio_counter
from loadgen.workloads.randomness import seeded
from loadgen.workloads.registry import trace_workload, with_lengths, workload_warnings

Write = Callable[[str, str | bytes], Path]
Make = Callable[..., PromptRequest]
TextOf = Callable[[Prompt], str]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("300", LengthDistribution("constant", 300)),
        ("constant:300", LengthDistribution("constant", 300)),
        ("uniform:100-400", LengthDistribution("uniform", 100, 400)),
        ("normal:300,50", LengthDistribution("normal", 300, 50)),
        (" lognormal:300,0.5 ", LengthDistribution("lognormal", 300, 0.5)),
    ],
)
def test_specs(text: str, found: LengthDistribution) -> None:
    assert parse_lengths(text) == found


@pytest.mark.parametrize("text", ["", "many", "uniform:100", "constant:1-2", "uniform:400-100", "0", "zipf:1,2", "-5"])
def test_bad_specs_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError):
        parse_lengths(text)


@pytest.mark.parametrize("text", ["300", "uniform:100-400", "normal:300,50", "lognormal:300,0.5"])
def test_draws_follow_the_distribution(text: str) -> None:
    lengths = parse_lengths(text)
    rng = seeded("draws")
    drawn = [lengths.draw(rng) for _ in range(4000)]
    assert statistics.fmean(drawn) == pytest.approx(lengths.mean, rel=0.05)
    assert min(drawn) >= 1
    if lengths.kind == "uniform":
        assert (min(drawn), max(drawn)) == (100, 400)
    if lengths.kind == "normal":
        assert statistics.stdev(drawn) == pytest.approx(50, rel=0.1)
    if lengths.kind == "lognormal":
        assert statistics.median(drawn) == pytest.approx(300, rel=0.05)


def test_ratio_counter_rounds_up() -> None:
    count = ratio_counter(4.0)
    assert [count(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    with pytest.raises(UsageError):
        ratio_counter(0)


def test_drawn_lengths_are_met_and_equal_for_all_profiles(
    request_of: Make, count_tokens: TokenCounter, text_of: TextOf
) -> None:
    spec = (parse_lengths("uniform:100-400"), parse_lengths("uniform:8-64"))
    workload = with_lengths("chat", *spec)
    prompts = workload.prompts(request_of(count=60), count_tokens)
    assert prompts == with_lengths("chat", *spec).prompts(request_of(count=60), count_tokens)
    assert prompts[:10] == workload.prompts(request_of(count=10), count_tokens)
    lengths = [count_tokens(text_of(prompt)) for prompt in prompts]
    assert min(lengths) < 150
    assert max(lengths) > 350
    assert all(8 <= prompt.max_tokens <= 64 for prompt in prompts)
    assert len({prompt.max_tokens for prompt in prompts}) > 20
    assert workload.default_input_tokens == 250
    assert len({text_of(prompt)[:16] for prompt in prompts}) == 60


def test_lengths_of_a_file_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="no workload"):
        with_lengths("prompts.jsonl", parse_lengths("300"), None)


def test_our_own_trace(write: Write) -> None:
    lines = '{"at_s":12.5,"input_tokens":300,"output_tokens":20}\n{"at_s":10,"prompt":"Hello","max_tokens":4}\n'
    trace = read_trace(write("day.jsonl", lines))
    assert trace.arrivals == (Arrival(0.0, None, 4, "Hello"), Arrival(2.5, 300, 20))
    assert trace.times_s == (0.0, 2.5)
    assert trace.duration_s == 2.5


def test_mooncake_time_stamps_are_milliseconds(write: Write) -> None:
    lines = '{"timestamp":27482,"input_length":6955,"output_length":52,"hash_ids":[46,47]}\n'
    lines += '{"timestamp":30535,"input_length":6472,"output_length":26,"hash_ids":[46]}\n'
    trace = read_trace(write("mooncake.jsonl", lines))
    assert trace.arrivals[0] == Arrival(0.0, 6955, 52)
    assert trace.arrivals[1].at_s == pytest.approx(3.053)


@pytest.mark.parametrize("extra", [("", ""), ("Session ID,Elapsed time,", "s1,0.5,")])
def test_burstgpt_time_stamps_are_seconds(extra: tuple[str, str], write: Write) -> None:
    head, cells = extra
    text = f"Timestamp,{head}Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    text += f"5,{cells}ChatGPT,472,18,490,Conversation log\n45,{cells}ChatGPT,1087,230,1317,Conversation log\n"
    text += f"118,{cells}GPT-4,417,0,417,Conversation log\n"
    trace = read_trace(write("burst.csv", text))
    assert trace.arrivals == (Arrival(0.0, 472, 18), Arrival(40.0, 1087, 230))
    assert "1 rows" in trace.warnings[0]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "Time,Tokens\n1,2\n", "lacks a column"),
        ("a.csv", "Timestamp,Request tokens,Response tokens\nx,1,2\n", "line 2: Timestamp"),
        ("a.csv", b"\xff\xfe", "not UTF-8"),
        ("a.jsonl", '{"input_tokens":3}\n{bad\n', "2 fault"),
        ("a.jsonl", '{"timestamp":1,"input_length":0,"output_length":1}\n', "line 1: input_length"),
        ("a.jsonl", "\n", "holds no request"),
    ],
)
def test_trace_faults(name: str, text: str | bytes, told: str, write: Write) -> None:
    with pytest.raises(UsageError, match=told):
        read_trace(write(name, text))


def test_a_trace_gives_its_lengths_to_natural_texts(
    write: Write, request_of: Make, count_tokens: TokenCounter, text_of: TextOf
) -> None:
    lines = '{"at_s":0,"input_tokens":300,"output_tokens":20}\n{"at_s":1,"input_tokens":5,"output_tokens":9}\n'
    path = write("day.jsonl", lines + '{"at_s":2,"prompt":"Hello","max_tokens":4}\n{"at_s":3}\n')
    workload = trace_workload(path, "chat")
    prompts = workload.prompts(request_of(count=4), count_tokens)
    assert [prompt.max_tokens for prompt in prompts] == [20, 9, 4, 128]
    lengths = [count_tokens(text_of(prompt)) for prompt in prompts]
    assert lengths[0] == pytest.approx(300, rel=0.05)
    assert lengths[1] < 60
    assert text_of(prompts[2]) == "Hello"
    assert any("1 requests of day are shorter" in warning for warning in workload_warnings(workload))
    assert len({prompt.prompt_id for prompt in prompts}) == 4
    with pytest.raises(UsageError, match="has 4 requests, but 5"):
        workload.prompts(request_of(count=5), count_tokens)
