"""The greedy part of the same-quality test: answers, where they part, and what the servers say there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.analysis.lossless_model import Arm, Divergence
from loadgen.sweep.lossless_client import Answer, Ask, LosslessServer
from loadgen.sweep.lossless_journal import Journal, Question

RESUMES = 8
"""How often an answer is taken up again behind the baseline's token: more would cost more than they tell."""
TOP = 20


@dataclass(frozen=True)
class Asking:
    """A server, and the journal's phase that its answers stand under."""

    journal: Journal
    server: LosslessServer
    phase: str

    async def all(self, part: str, asks: Sequence[Ask], concurrency: int) -> list[Answer]:
        """The answers in the order of the questions."""
        return await self.journal.ask_all(f"{self.phase}/{part}", self.server, asks, concurrency)


@dataclass(frozen=True)
class Reference:
    """The baseline's own answer, made alone on its server."""

    question: Question
    answer: Answer


@dataclass(frozen=True)
class Chunk:
    """A streamed chunk of several tokens: drafts that were accepted, and the token after them."""

    reference: Reference
    start: int
    """Output position of its first token."""
    size: int


async def references(asking: Asking, questions: Sequence[Question]) -> list[Reference]:
    """The baseline's answers, one request at a time, with the log-probability of each token."""
    asks = [Ask(q.tokens, q.max_tokens, logprobs=1) for q in questions]
    answers = await asking.all("reference", asks, 1)
    return [Reference(question, answer) for question, answer in zip(questions, answers, strict=True)]


async def compare(asking: Asking, found: Sequence[Reference], concurrency: int) -> tuple[Arm, tuple[Chunk, ...]]:
    """The server's answers against the references, and the chunks in which drafts were accepted (only told at
    concurrency 1: a busy server may put several steps into one chunk).
    """
    chains = [_Chain(reference) for reference in found]
    alone = concurrency == 1
    for number in range(RESUMES + 1):
        open_chains = [chain for chain in chains if not chain.done]
        if not open_chains:
            break
        asks = [chain.ask(stream=alone) for chain in open_chains]
        answers = await asking.all(f"{concurrency}/{number}", asks, concurrency)
        for chain, answer in zip(open_chains, answers, strict=True):
            chain.take(answer, concurrency)
    arm = Arm(
        concurrency=concurrency,
        prompts=len(chains),
        exact=sum(not chain.divergences for chain in chains),
        tokens=sum(chain.compared for chain in chains),
        first_divergences=tuple(chain.divergences[0].position for chain in chains if chain.divergences),
        divergences=tuple(d for chain in chains for d in chain.divergences),
    )
    return arm, tuple(chunk for chain in chains for chunk in chain.chunks)


async def with_gaps(asking: Asking, arm: Arm, found: Sequence[Reference], *, own: bool = False) -> Arm:
    """The arm with each divergence's gap as the asked server's log-probabilities give it at the same prefix."""
    by_name = {reference.question.name: reference for reference in found}
    asks = []
    for d in arm.divergences:
        reference = by_name[d.prompt]
        prefix = (*reference.question.tokens, *reference.answer.tokens[: d.position])
        asks.append(Ask(prefix, 1, logprobs=TOP))
    answers = await asking.all(f"gaps-{arm.concurrency}", asks, 8)
    gaps = [_gap(answer, d.got) for d, answer in zip(arm.divergences, answers, strict=True)]
    both = zip(arm.divergences, gaps, strict=True)
    changed = [replace(d, own_gap=gap) if own else replace(d, gap=gap) for d, gap in both]
    return replace(arm, divergences=tuple(changed))


def _gap(answer: Answer, token: int) -> float | None:
    """Nat between the likeliest token and `token`; None if it is not among those that the server names."""
    row = answer.top[0] if answer.top else {}
    return max(row.values()) - row[token] if token in row else None


class _Chain:
    """One answer that is taken up again after each divergence."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.at = 0
        self.compared = 0
        self.divergences: list[Divergence] = []
        self.chunks: list[Chunk] = []

    @property
    def done(self) -> bool:
        return self.at >= len(self.reference.answer.tokens)

    def ask(self, *, stream: bool) -> Ask:
        wanted = self.reference.answer.tokens
        prefix = (*self.reference.question.tokens, *wanted[: self.at])
        return Ask(prefix, len(wanted) - self.at, stream=stream)

    def take(self, answer: Answer, concurrency: int) -> None:
        wanted, got = self.reference.answer.tokens[self.at :], answer.tokens
        same = next(
            (i for i, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b), min(len(wanted), len(got))
        )
        self._note_chunks(answer.chunks, same)
        self.compared += same
        if same < len(wanted):
            self.compared += 1
            self.divergences.append(
                Divergence(
                    prompt=self.reference.question.name,
                    concurrency=concurrency,
                    position=self.at + same,
                    wanted=wanted[same],
                    got=got[same] if same < len(got) else -1,
                    in_chunk=_chunk_at(answer.chunks, same),
                )
            )
        self.at += same + 1

    def _note_chunks(self, sizes: tuple[int, ...], same: int) -> None:
        start = 0
        for size in sizes:
            if size > 1 and start > 0 and start + size <= same:
                self.chunks.append(Chunk(self.reference, self.at + start, size))
            start += size


def _chunk_at(sizes: tuple[int, ...], index: int) -> int:
    end = 0
    for size in sizes:
        end += size
        if index < end:
            return size
    return 0
