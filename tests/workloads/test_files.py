"""Prompts out of files."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.workloads.base import Message, Prompt, PromptRequest, TokenCounter, Workload
from loadgen.workloads.file_workload import unique_share
from loadgen.workloads.formats import speed_bench
from loadgen.workloads.loaders import detect_format, load_prompts
from loadgen.workloads.registry import get_workload, workload_warnings

Write = Callable[[str, str | bytes], Path]
Make = Callable[..., PromptRequest]


def jsonl(count: int) -> str:
    return "".join(json.dumps({"prompt": f"question number {index}"}) + "\n" for index in range(count))


def ask(workload: Workload, request: PromptRequest) -> tuple[Prompt, ...]:
    return workload.prompts(request, len)


def contents(prompts: tuple[Prompt, ...]) -> list[str]:
    return [prompt.messages[0].content for prompt in prompts if prompt.messages]


def test_c47_fewer_prompts_than_users_are_refused(write: Write, request_of: Make) -> None:
    workload = get_workload(str(write("few.jsonl", jsonl(10))))
    with pytest.raises(UsageError, match=r"has 8 prompts for measuring, but 32 are needed.*\?salt.*\?repeat"):
        ask(workload, request_of(level=32, count=32))


def test_c54_a_small_file_needs_an_explicit_repeat(write: Write, request_of: Make) -> None:
    path = write("small.jsonl", jsonl(21))
    with pytest.raises(UsageError, match="90 are needed"):
        ask(get_workload(str(path)), request_of(count=90))
    repeated = get_workload(f"{path}?repeat")
    prompts = ask(repeated, request_of(count=90))
    assert len(prompts) == 90
    assert len({prompt.prompt_id for prompt in prompts}) == 90
    assert unique_share(prompts) == pytest.approx(17 / 90)
    assert any("prefix cache" in warning for warning in workload_warnings(repeated))


def test_c54_a_salt_makes_every_prompt_unique(write: Write, request_of: Make) -> None:
    salted = get_workload(f"{write('small.jsonl', jsonl(21))}?salt")
    prompts = ask(salted, request_of(count=90)) + ask(salted, request_of(count=90, level=16))
    assert unique_share(prompts) == 1.0
    assert len({text[:16] for text in contents(prompts)}) == 180
    assert all(text.split("\n", 1)[1].startswith("question number") for text in contents(prompts))
    assert workload_warnings(salted) == ()


def test_c55_each_bad_line_is_named_and_nothing_runs(write: Write) -> None:
    path = write(
        "faulty.jsonl",
        b"\xef\xbb\xbf"
        + '{"prompt":"a"}\n\n{"prompt":"x\u2028y"}\n{"prompt":""}\n{"text":"b"}\n{bad\n'.encode()
        + b'{"prompt":"\xff"}\n',
    )
    with pytest.raises(UsageError) as caught:
        load_prompts(path)
    told = str(caught.value)
    assert "3 fault(s), nothing was run" in told
    assert "line 4: prompt is empty" in told
    assert "line 6: is not JSON" in told
    assert "line 7: is not UTF-8" in told


def test_c55_what_is_right_is_read_as_it_stands(write: Write) -> None:
    lines = '{"prompt":"a"}\n\n{"prompt":"x\u2028y"}\r\n{"text":"b","max_tokens":7,"other":1}\n{"token_ids":[5,6]}\n'
    path = write("good.jsonl", b"\xef\xbb\xbf" + lines.encode())
    first, second, third, fourth = load_prompts(path).prompts
    assert first.messages == (Message("user", "a"),)
    assert second.messages == (Message("user", "x\u2028y"),)
    assert (third.text, third.max_tokens, third.messages) == ("b", 7, None)
    assert fourth.token_ids == (5, 6)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"prompt":"a","text":"b"}', "has prompt and text"),
        ('{"question":"a"}', "has none of them"),
        ('{"messages":[{"role":"robot","content":"a"}]}', "messages.0.role"),
        ('{"messages":[]}', "messages is empty"),
        ('{"messages":[{"role":"user","content":" "}]}', "messages are empty"),
        ('{"prompt":"a","max_tokens":0}', "max_tokens"),
        ('{"prompt":5}', "prompt"),
        ('["a"]', "line 1"),
    ],
)
def test_c55_reasons(line: str, reason: str, write: Write) -> None:
    with pytest.raises(UsageError, match=r"line 1") as caught:
        load_prompts(write("one.jsonl", line + "\n"))
    assert reason in str(caught.value)


def test_c55_many_faults_are_counted(write: Write) -> None:
    with pytest.raises(UsageError, match=r"9 fault.*line 5.*and 4 more"):
        load_prompts(write("many.jsonl", "{bad\n" * 9))


def test_messages_keep_their_roles_and_the_salt_comes_first(write: Write, request_of: Make) -> None:
    record = {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]}
    path = write("chat.jsonl", json.dumps(record) + "\n")
    (prompt,) = ask(get_workload(f"{path}?salt"), request_of(count=1))
    assert prompt.messages is not None
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert prompt.messages[0].content.endswith("\nBe kind.")
    assert prompt.messages[1].content == "Hello"


def test_text_can_be_salted_and_token_ids_cannot(write: Write, request_of: Make) -> None:
    path = write("t.jsonl", '{"text":"Once"}')
    (prompt,) = ask(get_workload(f"{path}?salt"), request_of(count=1))
    assert prompt.text is not None
    assert prompt.text.endswith("\nOnce")
    path = write("i.jsonl", '{"token_ids":[1]}')
    with pytest.raises(UsageError, match="cannot be salted"):
        ask(get_workload(f"{path}?salt"), request_of(count=1))


def test_c51_warm_up_takes_other_lines_than_measuring(write: Write, request_of: Make) -> None:
    workload = get_workload(str(write("file.jsonl", jsonl(50))))
    warm_up = set(contents(ask(workload, request_of(count=10, purpose="warmup"))))
    assert len(warm_up) == 10
    for level in (1, 8):
        measured = set(contents(ask(workload, request_of(count=40, level=level))))
        assert len(measured) == 40
        assert not warm_up & measured


def test_c53_a_file_gives_the_same_order_for_the_same_seed(write: Write, request_of: Make) -> None:
    path = str(write("file.jsonl", jsonl(50)))
    first, again = ask(get_workload(path), request_of()), ask(get_workload(path), request_of())
    assert first == again
    assert contents(first) != contents(ask(get_workload(path), request_of(level=16)))
    assert ask(get_workload(path), request_of(count=5)) == first[:5]


def test_a_file_keeps_its_own_lengths_and_caps(write: Write, request_of: Make, count_tokens: TokenCounter) -> None:
    path = write("caps.jsonl", '{"prompt":"aaaa bbbb","max_tokens":9}\n')
    workload = get_workload(str(path))
    assert [p.max_tokens for p in workload.prompts(request_of(count=1), count_tokens)] == [9]
    own = workload.default_input_tokens
    assert workload.prompts(request_of(count=1, input_tokens=own), count_tokens)
    with pytest.raises(UsageError, match="have the length that they have"):
        workload.prompts(request_of(count=1, input_tokens=512), count_tokens)


def test_sharegpt(write: Write) -> None:
    entries = [
        {"id": "a", "conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]},
        {"id": "b", "conversations": [{"from": "gpt", "value": "Hi"}, {"from": "human", "value": "And now?"}]},
        {"id": "c", "conversations": []},
    ]
    path = write("sharegpt.json", json.dumps(entries))
    found = load_prompts(path)
    assert [p.messages[0].content for p in found.prompts if p.messages] == ["Why?", "And now?"]
    assert "1 of 3 conversations" in found.warnings[0]
    assert workload_warnings(get_workload(str(path)))[0] == found.warnings[0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("{}", "no list of conversations"),
        ('[{"id":1}]', "entry 1: conversations"),
        ("[]", "no prompt"),
    ],
)
def test_sharegpt_faults(content: str, told: str, write: Write) -> None:
    with pytest.raises(UsageError, match=told):
        load_prompts(write("sharegpt.json", content))


def test_spec_bench(write: Write) -> None:
    rows = [
        {"question_id": 81, "category": "writing", "turns": ["Write a post.", "Rewrite it."], "reference": []},
        {"question_id": 241, "category": "qa", "turns": ["Who?"]},
    ]
    path = write("question.jsonl", "\n".join(map(json.dumps, rows)))
    assert detect_format(path) == "spec-bench"
    found = load_prompts(path)
    assert [p.messages[0].content for p in found.prompts if p.messages] == ["Write a post.", "Who?"]


def test_spec_bench_faults(write: Write) -> None:
    rows = '{"question_id":1,"category":"qa","turns":["a"]}\n{"question_id":2,"category":"qa","turns":[]}\n'
    rows += '{"question_id":3,"category":"qa","turns":[" "]}\n{"question_id":4,"turns":["a"]}\n'
    with pytest.raises(UsageError, match=r"3 fault.*line 2: turns.*line 3: the first turn is empty.*line 4: category"):
        load_prompts(write("question.jsonl", rows))


def test_speed_bench_rows() -> None:
    rows = [["Code this."], [{"role": "user", "content": "Say that."}], ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM"]]
    found = speed_bench.from_rows(Path("test.parquet"), list(rows))
    assert [p.messages[0].content for p in found.prompts if p.messages] == ["Code this.", "Say that."]
    assert "1 of 3 rows" in found.warnings[0]
    with pytest.raises(UsageError, match="row 2: turns holds no text"):
        speed_bench.from_rows(Path("test.parquet"), [["a"], []])


def test_speed_bench_without_its_extra_names_it(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"loadgen\[parquet\]"):
        load_prompts(write("test.parquet", b"PAR1"))


@pytest.mark.parquet
def test_speed_bench_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.table({"category": ["coding"], "turns": [["Code this."]]}), path)
    assert [p.messages[0].content for p in load_prompts(path).prompts if p.messages] == ["Code this."]
    path.write_bytes(b"not parquet")
    with pytest.raises(UsageError, match="no SPEED-Bench parquet file"):
        load_prompts(path)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.csv", "Timestamp\n", "request trace"),
        ("x.jsonl", '{"timestamp":1,"input_length":5,"output_length":5}', "request trace"),
        ("x.yaml", "a: 1", "unknown ending"),
        ("x.jsonl", "", "holds no prompt"),
    ],
)
def test_files_that_are_no_prompt_lists(name: str, content: str, told: str, write: Write) -> None:
    with pytest.raises(UsageError, match=told):
        get_workload(str(write(name, content)))


def test_missing_files_and_options_are_one_sentence(write: Write) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        get_workload("nowhere/prompts.jsonl")
    path = write("p.jsonl", jsonl(2))
    with pytest.raises(UsageError, match="no option 'pepper'"):
        get_workload(f"{path}?pepper")
    with pytest.raises(UsageError, match="no workload format 'xml'"):
        get_workload(f"{path}?format=xml")
    assert get_workload(f"{path}?format=jsonl").name == "p"


def test_unique_share_of_nothing_is_nothing() -> None:
    assert unique_share(()) == 0.0


@pytest.mark.parametrize(
    ("line", "reason"),
    [('{"prompt": "\\ud800 half"}', "half a character"), ("[" * 100_000, "nested too deeply")],
)
def test_a_line_that_no_request_can_carry_is_a_fault_with_its_number(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(jsonl(1) + line + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=f"line 2: .*{reason}"):
        load_prompts(path)


def test_two_escaped_halves_are_one_character(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "\\ud83d\\ude00"}\n', encoding="utf-8")
    assert [p.messages[0].content for p in load_prompts(path).prompts if p.messages] == ["\U0001f600"]
