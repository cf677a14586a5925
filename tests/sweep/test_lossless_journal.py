"""What was asked is not asked again, whatever ended the test."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.analysis.lossless_model import Drafted
from loadgen.errors import ServerError
from loadgen.sweep.lossless_client import Answer, Ask
from loadgen.sweep.lossless_journal import Journal, Question
from loadgen.workloads.base import Prompt


class Echo:
    """Answers with the prompt's first token; waits where it is told to, and fails at the token 13."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.held: dict[int, asyncio.Event] = {}
        self.reached = asyncio.Event()
        self.counted = 0

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        return prompt.token_ids or ()

    async def answer(self, ask: Ask) -> Answer:
        token = ask.prompt[0]
        self.asked.append(token)
        if token in self.held:
            self.reached.set()
            await self.held[token].wait()
        if token == 13:
            raise ServerError("it died")
        self.counted += 1
        return Answer((token,), top=({token: -0.5},))

    async def mark(self) -> None:
        self.counted = 0

    async def since_mark(self) -> Drafted:
        return Drafted(self.counted, 4 * self.counted, 2 * self.counted, 5 * self.counted)


@pytest.fixture
def opened() -> Iterator[Callable[..., Journal]]:
    """Journals that are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(contextlib.closing(Journal(*arguments)))


def asks(*tokens: int) -> list[Ask]:
    return [Ask((token,), 1) for token in tokens]


async def test_what_stands_in_the_folder_is_not_asked_again(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    first, second = opened(tmp_path), Echo()
    before = await first.ask_all("a", Echo(), asks(1, 2, 3), 2)
    first.close()

    again = opened(tmp_path)
    after = await again.ask_all("a", second, asks(1, 2, 9, 4), 2)

    assert after[:2] == before[:2]
    assert after[0].top == ({1: -0.5},)
    assert second.asked == [9, 4]  # another question at the same place, and one that is new
    assert [a.tokens for a in await again.ask_all("b", second, asks(1), 1)] == [(1,)]
    assert second.asked == [9, 4, 1]  # another phase is another measurement


async def test_an_interrupted_test_takes_in_the_answers_in_flight_and_their_counts(
    tmp_path: Path, opened: Callable[..., Journal]
) -> None:
    server, said = Echo(), asyncio.Event()
    journal = opened(tmp_path, lambda _text: said.set())
    server.held = {3: asyncio.Event()}

    async def run() -> None:
        async with journal.counting("a", server) as counted:
            await journal.ask_all("a", counted, asks(1, 2, 3, 4, 5), 1)

    task = asyncio.create_task(run())
    await server.reached.wait()
    task.cancel()
    await said.wait()
    server.held[3].set()
    with pytest.raises(asyncio.CancelledError):
        await task
    journal.close()

    later, more = opened(tmp_path), Echo()
    assert (server.asked, later.answers) == ([1, 2, 3], 3)
    async with later.counting("a", more) as counted:
        await later.ask_all("a", counted, asks(1, 2, 3, 4, 5), 1)
    assert more.asked == [4, 5]
    assert later.drafted("a") == Drafted(5, 20, 10, 25)


async def test_a_second_interrupt_does_not_wait(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    server, said = Echo(), asyncio.Event()
    journal = opened(tmp_path, lambda _text: said.set())
    server.held = {2: asyncio.Event()}
    task = asyncio.create_task(journal.ask_all("a", server, asks(1, 2), 1))
    await server.reached.wait()
    task.cancel()
    await said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.answers == 1


async def test_after_a_kill_the_counts_are_a_lower_bound(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    killed = opened(tmp_path)
    async with killed.counting("a", Echo()) as counted:
        await killed.ask_all("a", counted, asks(1, 2), 1)
        lines = (tmp_path / "drafted.jsonl").read_bytes()
    (tmp_path / "drafted.jsonl").write_bytes(lines)  # as the kill left it: begun, not ended
    killed.close()

    later = opened(tmp_path)
    async with later.counting("a", Echo()) as counted:
        await later.ask_all("a", counted, asks(1, 2, 3), 1)
    assert later.drafted("a") == Drafted(1, 4, 2, 5, at_least=True)


async def test_nothing_is_counted_and_no_server_needed_where_nothing_is_asked(
    tmp_path: Path, opened: Callable[..., Journal]
) -> None:
    journal, server = opened(tmp_path), Echo()
    async with journal.counting("a", server) as counted:
        await journal.ask_all("a", counted, asks(1), 1)
    async with journal.counting("a", server) as counted:
        await journal.ask_all("a", counted, asks(1), 1)

    assert server.asked == [1]
    assert journal.drafted("a") == Drafted(1, 4, 2, 5)


async def test_a_dead_server_loses_no_answer(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    with pytest.raises(ServerError, match="it died"):
        await journal.ask_all("a", Echo(), asks(1, 2, 13, 4), 1)
    journal.close()

    assert opened(tmp_path).answers == 2


async def test_a_set_of_prompts_is_whole_or_not_there(tmp_path: Path, opened: Callable[..., Journal]) -> None:
    journal = opened(tmp_path)
    journal.keep_questions([Question("p0", (1, 2), 8, 0), Question("p1", (3,), 8, 0)])
    journal.close()

    later = opened(tmp_path)
    assert [q.name for q in later.questions(0)] == ["p0", "p1"]
    assert later.questions(1) == []
