"""What a same-quality test asked and got, kept as it comes: an interrupted test does not ask it again."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.analysis.lossless_model import Drafted
from loadgen.clock import now_s
from loadgen.errors import LoadgenError
from loadgen.store.codec import encode
from loadgen.store.jsonl import Appender, read
from loadgen.sweep.lossless_client import Answer, Ask, LosslessServer

ASKED, DRAFTED, QUESTIONS = "asked.jsonl", "drafted.jsonl", "questions.jsonl"
GRACE_S = 60.0
"""So long an interrupted test waits for the answers in flight; another Ctrl-C ends that too."""
SAY_EVERY_S = 15.0


@dataclass(frozen=True)
class Question:
    """One prompt as the servers get it."""

    name: str
    tokens: tuple[int, ...]
    max_tokens: int
    round: int = 0
    """Which set of prompts it belongs to."""


@dataclass(frozen=True)
class Asked:
    """One line of asked.jsonl."""

    phase: str
    index: int
    ask: str
    """Digest of the question: another one at the same place is asked anew."""
    answer: Answer


@dataclass(frozen=True)
class Count:
    """One line of drafted.jsonl: counting began (None), or what it gave."""

    phase: str
    drafted: Drafted | None


class Journal:
    """The questions, answers and counters of one test; without a folder they are kept in memory only."""

    def __init__(self, folder: Path | None = None, say: Callable[[str], None] = lambda _text: None) -> None:
        self._say = say
        self._folder = folder
        self._files: dict[str, Appender] = {}
        self._answers: dict[tuple[str, int], tuple[str, Answer]] = {}
        self._counts: list[Count] = []
        self._questions: list[Question] = []
        if folder is not None:
            self._answers = {(a.phase, a.index): (a.ask, a.answer) for a in read(folder / ASKED, Asked)}
            self._counts = list(read(folder / DRAFTED, Count))
            self._questions = list(read(folder / QUESTIONS, Question))

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return len(self._answers)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def questions(self, number: int) -> list[Question]:
        """The prompts of that set; empty before `keep_questions`."""
        return [question for question in self._questions if question.round == number]

    def keep_questions(self, questions: Sequence[Question]) -> None:
        """All prompts of one set at once, so that a set is whole or not there."""
        self._questions += questions
        self._append(QUESTIONS, *questions)

    async def ask_all(self, phase: str, server: LosslessServer, asks: Sequence[Ask], concurrency: int) -> list[Answer]:
        """The answers in the order of the questions, at most `concurrency` in flight; those that stand in the journal
        are taken from it. When it is cancelled, the answers in flight are still taken in.
        """
        digests = [_digest(ask) for ask in asks]
        known = {i: self._known(phase, i, digest) for i, digest in enumerate(digests)}
        found: dict[int, Answer] = {i: answer for i, answer in known.items() if answer is not None}
        todo = iter([(i, ask) for i, ask in enumerate(asks) if i not in found])
        stopping = False
        spoke_s = now_s()

        async def work() -> None:
            nonlocal spoke_s
            for index, ask in todo:
                found[index] = await server.answer(ask)
                self._keep(Asked(phase, index, digests[index], found[index]))
                if now_s() - spoke_s > SAY_EVERY_S:
                    spoke_s = now_s()
                    self._say(f"… {len(found):,} of {len(asks):,} answers")
                if stopping:
                    return

        workers = [asyncio.ensure_future(work()) for _ in range(min(concurrency, len(asks) - len(found)))]
        try:
            if workers:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            stopping = True
            self._say("Interrupted: the answers in flight are still taken in (Ctrl-C again: without them).")
            await asyncio.wait(workers, timeout=GRACE_S)
            raise
        finally:
            for worker in workers:
                worker.cancel()
            faults = await asyncio.gather(*workers, return_exceptions=True)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault
        return [found[index] for index in range(len(asks))]

    @contextlib.asynccontextmanager
    async def counting(self, phase: str, server: LosslessServer) -> AsyncIterator[LosslessServer]:
        """The same server, whose speculative counters from its first question on go into the journal, also when the
        test is interrupted. Nothing is counted if nothing is asked.
        """
        counted = _Counted(server, lambda: self._keep_count(Count(phase, None)))
        try:
            yield counted
        except (LoadgenError, asyncio.CancelledError):
            # What broke is the news; a dead server has no counters.
            with contextlib.suppress(LoadgenError, OSError):
                if counted.marked:
                    self._keep_count(Count(phase, await counted.since_mark()))
            raise
        if counted.marked:
            self._keep_count(Count(phase, await counted.since_mark()))

    def drafted(self, *phases: str) -> Drafted:
        """The counters over all parts of these phases."""
        mine = [count.drafted for count in self._counts if count.phase in phases]
        known = [drafted for drafted in mine if drafted is not None]
        # Each part begins with a None.
        return _total(known, at_least=mine.count(None) > len(known))

    def _known(self, phase: str, index: int, digest: str) -> Answer | None:
        ask, answer = self._answers.get((phase, index), ("", None))
        return answer if ask == digest else None

    def _keep(self, asked: Asked) -> None:
        self._answers[asked.phase, asked.index] = asked.ask, asked.answer
        self._append(ASKED, asked)

    def _keep_count(self, count: Count) -> None:
        self._counts.append(count)
        self._append(DRAFTED, count)

    def _append(self, name: str, *facts: object) -> None:
        if self._folder is None:
            return
        if name not in self._files:
            self._files[name] = Appender(self._folder / name)
        self._files[name].append(*facts)


class _Counted:
    """Marks the server's counters before the first question."""

    def __init__(self, server: LosslessServer, begun: Callable[[], None]) -> None:
        self._server = server
        self._begun = begun
        self._lock = asyncio.Lock()
        self.marked = False
        self.tokenize = server.tokenize
        self.mark = server.mark
        self.since_mark = server.since_mark

    async def answer(self, ask: Ask) -> Answer:
        async with self._lock:
            if not self.marked:
                await self._server.mark()
                self._begun()
                self.marked = True
        return await self._server.answer(ask)


def _digest(ask: Ask) -> str:
    return hashlib.blake2b(encode(ask), digest_size=8).hexdigest()


def _total(parts: Sequence[Drafted], *, at_least: bool) -> Drafted:
    def add(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Drafted(
        add([p.drafts for p in parts]),
        add([p.draft_tokens for p in parts]),
        add([p.accepted_tokens for p in parts]),
        add([p.generated_tokens for p in parts]),
        at_least,
    )
