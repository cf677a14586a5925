"""The same-quality verdict in words."""

import re
from collections.abc import Iterator

from loadgen.analysis.lossless_greedy import false_alarm_rate
from loadgen.analysis.lossless_model import (
    Divergence,
    GreedyFinding,
    LosslessFinding,
    Quality,
    Rate,
    SamplingFinding,
)
from loadgen.report.words import percent

_PROMPT = re.compile(r"(?P<workload>.+)/\d+/L\d+/r(?P<set>\d+)/measure/(?P<number>\d+)(\+(?P<head>\d+))?")


def sentence(finding: LosslessFinding) -> str:
    """The answer in one sentence."""
    names = f"{finding.profile} against {finding.against}"
    parts = [("at temperature 0", finding.greedy), *((_at(s), s) for s in finding.sampling)]
    if finding.quality is Quality.DIFFERS:
        bad = [f"{where}, {_how(part)}" for where, part in parts if part and part.quality is Quality.DIFFERS]
        return f"{names}: differs {'; '.join(bad)}."
    if finding.quality is Quality.NOT_TESTED:
        bad = [f"{where} {part.reason}" for where, part in parts if part and part.quality is Quality.NOT_TESTED]
        good = [where for where, part in parts if part and part.quality is Quality.SAME]
        same = f" (same quality {' and '.join(good)})" if good else ""
        return f"{names}: not tested, for {'; '.join(bad) or 'nothing was asked'}{same}."
    return f"{names}: same quality {'; '.join(f'{where}, {_bound(part)}' for where, part in parts if part)}."


def lines(finding: LosslessFinding) -> list[str]:
    """What stands below the sentence: each number with its n and its interval."""
    found: list[str] = []
    if finding.greedy:
        found += _greedy_lines(finding.greedy)
    for sampling in finding.sampling:
        found += _sampling_lines(sampling)
    return found


def _greedy_lines(greedy: GreedyFinding) -> Iterator[str]:
    yield "At temperature 0"
    yield f"  answers equal token for token: {_rate(greedy.exact)}; control {_rate(greedy.control_exact)} (no verdict)"
    if greedy.median_first_divergence is not None:
        yield f"  median first divergence: after {greedy.median_first_divergence:.0f} tokens"
    yield (
        f"  prompts with a hard divergence: {_rate(greedy.hard)}; control {_rate(greedy.control_hard)}; near ties: "
        f"{greedy.soft_divergences}"
    )
    source = "calibrated on the control" if greedy.tolerance.source == "control" else f"for {greedy.tolerance.kind}"
    yield (
        f"  tolerance {greedy.tolerance.nat:.2g} nat ({source}); a correct server fails this part in "
        f"{percent(false_alarm_rate(greedy.hard.n), 1)} of tests"
    )
    yield f"  {_drafted(greedy)}"
    for divergence in greedy.hard_divergences[:5]:
        yield f"  {_divergence(divergence)}"
    if len(greedy.hard_divergences) > 5:
        yield f"  … and {len(greedy.hard_divergences) - 5} more, in result.json"


def _sampling_lines(sampling: SamplingFinding) -> Iterator[str]:
    yield f"At temperature {sampling.temperature:g}"
    if sampling.places:
        worst = max(sampling.places, key=lambda place: place.tv_upper95)
        calm = max(sampling.control, key=lambda place: place.tv_upper95)
        yield (
            f"  {len(sampling.places)} places, {sampling.samples} samples each: largest distance "
            f"{max(p.tv for p in sampling.places):.3f} (95 % bound {worst.tv_upper95:.3f}), "
            f"control {max(p.tv for p in sampling.control):.3f} ({calm.tv_upper95:.3f})"
        )
        yield (
            f"  smallest p after Holm: {min(p.p_holm for p in sampling.places):.2g}, control "
            f"{min(p.p_holm for p in sampling.control):.2g}; called different below {sampling.alpha:g}"
        )
        yield (
            f"  a distance of {max(p.detectable_tv for p in sampling.places):.3f} would have been seen with 80 % power "
            f"wherever it lay; margin {sampling.margin:g}"
        )
    yield f"  {_drafted(sampling)}"


def _at(sampling: SamplingFinding) -> str:
    return f"at temperature {sampling.temperature:g}"


def _how(part: GreedyFinding | SamplingFinding) -> str:
    if isinstance(part, SamplingFinding):
        return part.reason
    worst = max(part.hard_divergences, key=lambda d: float("inf") if d.gap is None else d.gap)
    return (
        f"{part.hard.count} of {part.hard.n} prompts ({interval_words(part.hard)}) get a token that the baseline "
        f"would not say, such as token {worst.got} where it says {worst.wanted}, {_gap(worst.gap)}; {part.reason}"
    )


def _bound(part: GreedyFinding | SamplingFinding) -> str:
    if isinstance(part, GreedyFinding):
        count = f"{part.hard.count} of {part.hard.n} prompts"
        return f"{count} leave the baseline beyond a near tie ({interval_words(part.hard)})"
    bound = max(place.tv_upper95 for place in part.places)
    return f"no token distribution is more than {bound:.2f} away at 95 % (margin {part.margin:g})"


def _drafted(part: GreedyFinding | SamplingFinding) -> str:
    drafted = part.drafted
    if drafted.accepted_tokens is None:
        return "tokens from accepted drafts: not known"
    share = f" ({percent(drafted.share)} of all)" if drafted.share is not None else ""
    least = "at least " if drafted.at_least else ""
    return f"tokens from accepted drafts: {least}{drafted.accepted_tokens:.0f}{share}"


def _divergence(d: Divergence) -> str:
    drafts = "" if d.in_chunk == 0 else " in a drafted step" if d.in_chunk > 1 else " in a step without accepted draft"
    own = "" if d.own_gap is None else f"; its own server without drafts: {d.own_gap:.2f} nat behind"
    return (
        f"hard: {short_name(d.prompt)}, {d.concurrency} at a time, after {d.position} tokens{drafts}: {d.got} for "
        f"{d.wanted}, {_gap(d.gap)}{own}"
    )


def _gap(gap: float | None) -> str:
    return "outside the baseline's 20 likeliest" if gap is None else f"{gap:.2f} nat behind"


def _rate(rate: Rate) -> str:
    return f"{rate.count} of {rate.n} ({interval_words(rate)})"


def interval_words(rate: Rate) -> str:
    """`95 % CI 0.6 % to 16.9 %`."""
    low, high = rate.ci95
    return f"95 % CI {percent(low, 1)} to {percent(high, 1)}"


def short_name(name: str) -> str:
    """`code-edit 17 + 8 tokens` for `code-edit/200/L1/r0/measure/17+8`; another name as it is."""
    found = _PROMPT.fullmatch(name)
    if not found:
        return name
    second = ", second set" if found["set"] == "1" else ""
    head = f" + {found['head']} tokens" if found["head"] else ""
    return f"{found['workload']} {found['number']}{second}{head}"
