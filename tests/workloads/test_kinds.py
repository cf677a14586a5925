"""What each kind of prompt asks for, and how much of its answer stands in it."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.code_edit import SOURCE_TOKENS
from loadgen.workloads.corpus import code_units, fill, lines, passages
from loadgen.workloads.randomness import code_of, seeded, stable_hash
from loadgen.workloads.registry import get_workload

FENCE = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
PASSAGE = re.compile(r"<passage id=(\d+)>\n(.*?)\n</passage>", re.DOTALL)
Make = Callable[..., PromptRequest]
TextOf = Callable[[Prompt], str]
DATA = (
    ("questions.txt", "constraints.txt", "review_notes.txt", "stories.txt", "story_wishes.txt", "small_talk.txt"),
    ("passages.txt", "classics.txt", "passages_es.txt", "records.txt"),
)


@pytest.fixture
def texts(request_of: Make, count_tokens: TokenCounter, text_of: TextOf) -> Callable[..., list[str]]:
    def make(name: str, **changes: object) -> list[str]:
        return [text_of(p) for p in get_workload(name).prompts(request_of(count=100, **changes), count_tokens)]

    return make


@pytest.mark.parametrize("wanted", [None, 1500])
def test_code_edit_has_one_fence_and_ends_with_the_request(
    wanted: int | None, texts: Callable[..., list[str]], count_tokens: TokenCounter
) -> None:
    for text in texts("code-edit", input_tokens=wanted):
        ((_, source),) = FENCE.findall(text)
        request = text.rsplit("\n```\n\n", 1)[1]
        assert SOURCE_TOKENS[0] * 0.8 <= count_tokens(source) <= SOURCE_TOKENS[1] * 1.1
        assert re.match(r"(Repeat|Rewrite) .*\bcode\b.*, but .* only\.$|.* only the code\.$", request)


def test_code_edit_states_a_change_that_can_be_made(texts: Callable[..., list[str]]) -> None:
    kinds: Counter[str] = Counter()
    for text in texts("code-edit"):
        ((_, source),) = FENCE.findall(text)
        if renaming := re.search(r"rename `(\w+)` to `(\w+)`", text):
            kinds["rename"] += 1
            assert re.search(rf"\b{renaming[1]}\b", source)
            assert renaming[1] != renaming[2]
        elif number := re.search(r"change the number (\d+) to (\d+)", text):
            kinds["number"] += 1
            assert re.search(rf"\b{number[1]}\b", source)
            assert number[1] != number[2]
        else:
            kinds["comment"] += 1
            assert re.search(r"add the line `.+` at the top", text)
    assert set(kinds) == {"rename", "number", "comment"}


def test_long_code_edits_grow_by_files_not_by_the_code_to_rewrite(texts: Callable[..., list[str]]) -> None:
    for text in texts("code-edit", input_tokens=2000)[:10]:
        assert text.count("<file name=") >= 4
        assert text.count("```") == 2


def test_the_code_corpus_is_varied_and_its_names_occur() -> None:
    units = code_units()
    assert len(units) >= 25
    assert {unit.language for unit in units} == {"python", "javascript", "go", "sql"}
    for unit in units:
        for name, others in unit.names:
            assert re.search(rf"\b{name}\b", unit.text), (name, unit.text)
            assert others


def test_python_sources_are_python(texts: Callable[..., list[str]]) -> None:
    seen = 0
    for text in texts("code-edit"):
        ((language, source),) = FENCE.findall(text)
        if language == "python":
            compile(source, "prompt", "exec")
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", ["rag-quote", "lab-l31"])
def test_quoting_prompts_hold_the_passage_that_is_asked_for(name: str, texts: Callable[..., list[str]]) -> None:
    file = {"rag-quote": "passages.txt", "lab-l31": "passages_es.txt"}[name]
    by_title = {passage.title: passage for passage in passages(file)}
    for text in texts(name):
        found = PASSAGE.findall(text)
        assert [number for number, _ in found] == [str(number) for number in range(1, len(found) + 1)]
        outside = PASSAGE.sub("", text)
        (title,) = [title for title in by_title if title in outside]
        held = [body for _, body in found if any(_fixed_part(s) in body for s in by_title[title].sentences)]
        assert len(held) == 1


def _fixed_part(sentence: str) -> str:
    return max(re.split(r"\{\w+\}", sentence), key=len)


def test_summaries_and_translations_have_one_passage(texts: Callable[..., list[str]]) -> None:
    for name, word in (("summarise", "Summarise"), ("translate", "Translate"), ("extract-json", "Extract")):
        for text in texts(name):
            assert len(PASSAGE.findall(text)) == 1
            assert word in text


def test_extract_json_names_keys_and_holds_the_facts(texts: Callable[..., list[str]]) -> None:
    for text in texts("extract-json"):
        assert len(re.findall(r"`\w+`", text)) == 6
        assert "JSON" in text


def test_open_questions_carry_no_source(texts: Callable[..., list[str]]) -> None:
    for name in ("chat", "creative"):
        for text in texts(name):
            assert "```" not in text
            assert "<passage" not in text


def test_open_questions_vary(texts: Callable[..., list[str]]) -> None:
    assert len(lines("questions.txt")) >= 60
    asked = {text.split(".", 1)[1].strip() for text in texts("chat")}
    assert len(asked) == 100


def test_a_blend_has_all_its_parts(texts: Callable[..., list[str]]) -> None:
    found: Counter[str] = Counter()
    for text in texts("mixed"):
        found["code" if "```" in text else "passages" if "<passage" in text else "open"] += 1
    assert all(found[kind] >= 10 for kind in ("code", "passages", "open"))


def test_every_slot_of_every_text_can_be_filled() -> None:
    by_line, by_passage = DATA
    texts = [line for name in by_line for line in lines(name)]
    texts += [s for name in by_passage for passage in passages(name) for s in passage.sentences]
    for text in texts:
        assert "{" not in fill(text, seeded(1)), text


def test_an_unknown_slot_is_an_error() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        fill("{nonsense}", seeded(1))


def test_randomness_follows_from_its_parts_alone() -> None:
    assert stable_hash("a", 1) == stable_hash("a", 1)
    assert len({stable_hash(*parts) for parts in (("a", 1), ("a", "1"), ("a1",), (None,), ("None",))}) == 5
    assert seeded("x", 3).random() == seeded("x", 3).random()
    codes = {code_of("x", index) for index in range(20_000)}
    assert len(codes) == 20_000
    assert all(re.fullmatch(r"[A-Z2-9]{4}-[A-Z2-9]{4}-[A-Z2-9]{2}", code) for code in codes)
