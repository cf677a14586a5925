"""Pairs by prompt: the same prompt on either server, beside the pairs by cell (docs/method.md, part 2)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scipy.stats import spearmanr

from loadgen.store.model import CellKey, Condition

MIN_PROMPTS = 8
"""Fewer pairs at a level are not reported."""
TELLING = 0.2
"""A rank correlation below it is called none."""


@dataclass(frozen=True)
class PromptTime:
    """One request that ended well."""

    cell: CellKey
    prompt_id: str
    tpot_s: float
    tokens_per_chunk: float | None
    """Output tokens / token-bearing events: tokens per step as this prompt saw them; None where chunks were binned."""


@dataclass(frozen=True)
class PromptFinding:
    """One profile at one level over all prompts that both servers answered."""

    profile: str
    condition: Condition
    level: int
    n: int
    tpot_speedup: float
    """Geometric mean of baseline TPOT / profile TPOT over prompts."""
    middle_half: tuple[float, float]
    """Quartiles of the prompts' ratios: how far prompts differ, not an interval of the mean."""
    gaining: float
    """Share of prompts that are faster."""
    with_length: float | None
    """Spearman's rank correlation of a prompt's tokens per chunk with its ratio; None without chunks."""


def by_prompt(times: Iterable[PromptTime], against: str) -> tuple[PromptFinding, ...]:
    """Per profile, condition and level; empty where no prompt was answered by both. The order of `times` is nothing."""
    own: dict[tuple[str, Condition, int], list[tuple[float, float | None]]] = defaultdict(list)
    kept = list(times)
    base = {_place(one): one.tpot_s for one in kept if one.cell.profile == against and one.tpot_s > 0}
    for one in kept:
        partner = base.get(_place(one))
        if one.cell.profile != against and partner is not None and one.tpot_s > 0:
            ratio = math.log(partner / one.tpot_s)
            own[(one.cell.profile, one.cell.condition, one.cell.level)].append((ratio, one.tokens_per_chunk))
    return tuple(_finding(*key, pairs) for key, pairs in sorted(own.items()) if len(pairs) >= MIN_PROMPTS)


def prompt_notes(found: Sequence[PromptFinding]) -> tuple[str, ...]:
    """One sentence per profile and condition: each level's ratio, how many prompts gain, and which."""
    groups: dict[tuple[str, Condition], list[PromptFinding]] = defaultdict(list)
    for one in found:
        groups[(one.profile, one.condition)].append(one)
    return tuple(_note(profile, condition, levels) for (profile, condition), levels in groups.items())


def _place(one: PromptTime) -> tuple[Condition, int, int, int, str]:
    return one.cell.condition, one.cell.level, one.cell.repeat, one.cell.session, one.prompt_id


def _finding(
    profile: str, condition: Condition, level: int, pairs: Sequence[tuple[float, float | None]]
) -> PromptFinding:
    ratios = sorted(ratio for ratio, _ in pairs)
    half = len(ratios) // 2
    lower, upper = median(ratios[:half]), median(ratios[-half:])
    with_chunks = [(length, ratio) for ratio, length in pairs if length is not None]
    return PromptFinding(
        profile,
        condition,
        level,
        len(ratios),
        math.exp(fmean(ratios)),
        (math.exp(lower), math.exp(upper)),
        sum(ratio > 0 for ratio in ratios) / len(ratios),
        _rank_correlation(with_chunks),
    )


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    lengths, ratios = [length for length, _ in pairs], [ratio for _, ratio in pairs]
    if len(pairs) < MIN_PROMPTS or len(set(lengths)) < 2 or len(set(ratios)) < 2:
        return None
    return float(spearmanr(lengths, ratios).statistic)


def _note(profile: str, condition: Condition, levels: Sequence[PromptFinding]) -> str:
    parts = [
        f"{one.tpot_speedup:.2f}x at {one.level} (half of {one.n} prompts within {one.middle_half[0]:.2f} to "
        f"{one.middle_half[1]:.2f}, {one.gaining:.0%} gain)"
        for one in levels
    ]
    known = [one.with_length for one in levels if one.with_length is not None]
    text = f"{profile} on {condition.workload}, time per output token paired by prompt: {', '.join(parts)}"
    if not known:
        return text
    middle = median(known)
    gain = "gain most" if middle > 0 else "gain least"
    which = f"prompts with more tokens per chunk {gain}" if abs(middle) >= TELLING else "tokens per chunk do not tell"
    return f"{text}; {which} (rank correlation {middle:.2f})"
