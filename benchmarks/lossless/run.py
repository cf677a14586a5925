"""How often `loadgen lossless` is right: correct servers must pass, planted bugs must be caught; in virtual time.

python -m benchmarks.lossless.run                          240 correct servers, 20 of each bug (about 2 minutes)
python -m benchmarks.lossless.run --correct 50 --bugs 20   fewer
python -m benchmarks.lossless.run --write docs/method.md   puts the table between the file's marks
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.lossless.virtual import Case, verdict
from loadgen.analysis.lossless_greedy import rate
from loadgen.analysis.lossless_model import Quality

BEGIN, END = "<!-- lossless-bench: begin -->", "<!-- lossless-bench: end -->"
CORRECT, BUGS = 120, 20
WHOLE = Case(flips=0.5, temperatures=(0.8,), samples=300, prefixes=1, prompts=10)
"""10 prompts, greedy alone and 4 at a time, then 300 samples after one prefix with a margin of 0.25; half of all near
ties are decided another way by either server."""


@dataclass(frozen=True)
class Row:
    """One kind of server and how often it is tested."""

    name: str
    case: Case
    tests: int
    wanted: Quality


@dataclass(frozen=True)
class Score:
    """What the tests of one kind said."""

    row: Row
    said: Counter[Quality]


def rows(correct: int, bugs: int, whole: Case = WHOLE) -> list[Row]:
    """The kinds of servers."""
    eagle = replace(whole, profile="eagle")

    found = [
        Row("correct, ngram", whole, correct, Quality.SAME),
        Row("correct, eagle", eagle, correct, Quality.SAME),
    ]
    # Greedy answers tell these faults; the samples would take most of the time.
    for bug in ("bonus-shift", "bonus-shift:0.2", "accept-wrong", "accept-wrong:0.05"):
        found += [
            Row(f"{bug}, {case.profile}", replace(case, bug=bug, temperatures=()), bugs, Quality.DIFFERS)
            for case in (whole, eagle)
        ]
    # As many prompts as `loadgen lossless` takes: a fault in one of ten or twenty rejections needs them.
    found += [
        Row(f"{bug}, ngram, 40 prompts", replace(whole, bug=bug, temperatures=(), prompts=40), bugs, Quality.DIFFERS)
        for bug in ("accept-wrong", "accept-wrong:0.05")
    ]
    found += [
        Row("draft-temperature, ngram", replace(whole, bug="draft-temperature"), bugs, Quality.DIFFERS),
        Row("draft-temperature, eagle", replace(eagle, bug="draft-temperature"), bugs, Quality.DIFFERS),
        Row("no-residual, ngram", replace(whole, bug="no-residual"), bugs, Quality.DIFFERS),
        Row(
            "no-residual, ngram, 800 samples after 2 prefixes",
            replace(whole, bug="no-residual", samples=800, prefixes=2),
            bugs,
            Quality.DIFFERS,
        ),
    ]
    return found


def scores(found: Sequence[Row], jobs: int = 1) -> list[Score]:
    """Each kind's verdicts; every test has prompts, flips and samples of its own."""
    tasks = [(number, seed) for number, row in enumerate(found) for seed in range(1, row.tests + 1)]
    cases = [(number, replace(found[number].case, seed=seed)) for number, seed in tasks]
    counts: list[Counter[Quality]] = [Counter() for _ in found]
    for number, quality in _said(cases, jobs):
        counts[number][quality] += 1
        if jobs > 1 and counts[number].total() == found[number].tests:
            print(f"{found[number].name}: {dict(counts[number])}", file=sys.stderr, flush=True)
    return [Score(row, count) for row, count in zip(found, counts, strict=True)]


def _said(cases: Sequence[tuple[int, Case]], jobs: int) -> Iterator[tuple[int, Quality]]:
    if jobs == 1:
        yield from map(_one, cases)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_one, cases, chunksize=4)


def _one(task: tuple[int, Case]) -> tuple[int, Quality]:
    number, case = task
    return number, asyncio.run(verdict(case)).quality


def table(found: Sequence[Score]) -> str:
    """The scores as a Markdown table."""
    lines = ["| server | tests | same quality | differs | not tested | right, 95 % CI |", "|:--|--:|--:|--:|--:|--:|"]
    for score in found:
        n = score.row.tests
        right = rate(score.said[score.row.wanted], n)
        interval = f"{100 * right.ci95[0]:.1f} to {100 * right.ci95[1]:.1f} %"
        counts = " | ".join(str(score.said[quality]) for quality in (Quality.SAME, Quality.DIFFERS, Quality.NOT_TESTED))
        lines.append(f"| {score.row.name} | {n} | {counts} | {interval} |")
    return "\n".join(lines)


def main() -> None:
    """Runs the bench and prints its table."""
    parser = argparse.ArgumentParser(description="How often `loadgen lossless` is right, in virtual time.")
    parser.add_argument("--correct", type=int, default=CORRECT, help="correct servers of each kind")
    parser.add_argument("--bugs", type=int, default=BUGS, help="servers with each bug")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", type=Path, help="a Markdown file with marks for the table")
    args = parser.parse_args()
    started = time.monotonic()
    text = table(scores(rows(args.correct, args.bugs), args.jobs))
    print(text)
    print(f"\n{time.monotonic() - started:.0f} s", file=sys.stderr)
    if args.write:
        before, _, rest = args.write.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
