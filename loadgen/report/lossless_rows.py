"""A same-quality finding as plain rows of text: page and Markdown lay them out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadgen.analysis.lossless_drafts import FEWEST_ACCEPTED
from loadgen.analysis.lossless_greedy import ACCEPTED_FAULT_RATE, CONTROL_FACTOR, false_alarm_rate, is_hard
from loadgen.analysis.lossless_model import (
    Arm,
    Drafted,
    GreedyFinding,
    LosslessFinding,
    PlaceFinding,
    Quality,
    Rate,
    SamplingFinding,
)
from loadgen.analysis.lossless_servers import server_differences
from loadgen.report.lossless_json import LosslessAbout
from loadgen.report.lossless_text import interval_words, short_name
from loadgen.report.plan_rows import Table
from loadgen.report.words import fixed, percent

Facts = list[tuple[str, str]]
TONES = {Quality.SAME: "gain", Quality.DIFFERS: "loss", Quality.NOT_TESTED: "void"}
MANY_HARD = 20
EQUALITY_WORDS = (
    "Not the verdict: a correct vLLM may differ from its baseline in every answer while the baseline never differs "
    "from itself (vllm#41758), for verifying several tokens at once rounds differently than decoding one."
)


@dataclass(frozen=True)
class PartRow:
    """One part's verdict."""

    where: str
    quality: str
    tone: str
    decides: str


def parts(finding: LosslessFinding) -> list[PartRow]:
    """Each part with its verdict and what decides it."""
    rows = [_greedy_part(finding.greedy)] if finding.greedy else []
    return [*rows, *(_sampling_part(sampling) for sampling in finding.sampling)]


def _greedy_part(greedy: GreedyFinding) -> PartRow:
    words = (
        f"{rate_words(greedy.hard, 'prompts')} leave the baseline by more than {greedy.tolerance.nat:.2g} nat; the "
        f"baseline itself: {rate_words(greedy.control_hard)}"
    )
    return PartRow("temperature 0", greedy.quality, TONES[greedy.quality], _decides(greedy, words))


def _sampling_part(sampling: SamplingFinding) -> PartRow:
    words = ""
    if sampling.places:
        bound = max(place.tv_upper95 for place in sampling.places)
        words = (
            f"largest distance of the distributions {fixed(max(p.tv for p in sampling.places), 3)}, surely below "
            f"{fixed(bound, 3)} (margin {sampling.margin:g}); smallest p after Holm "
            f"{p_words(min(p.p_holm for p in sampling.places))} (differs below {sampling.alpha:g})"
        )
    where = f"temperature {sampling.temperature:g}"
    return PartRow(where, sampling.quality, TONES[sampling.quality], _decides(sampling, words))


def _decides(part: GreedyFinding | SamplingFinding, words: str) -> str:
    """The figures and the reason; what was not tested begins with why."""
    both = (part.reason, words) if part.quality is Quality.NOT_TESTED else (words, part.reason)
    return "; ".join(each for each in both if each)


def gap_table(finding: LosslessFinding) -> Table:
    """How far the answers part, a row per server and number in flight."""
    greedy = finding.greedy
    header = ["answers of", "in flight", "tokens compared", "partings", "median gap, nat", "largest gap, nat"]
    header += ["beyond the tolerance", "not among the 20 likeliest"]
    if greedy is None:
        return header, []
    rows = [
        [name, str(arm.concurrency), f"{arm.tokens:,}", str(len(arm.divergences)), *_gaps(arm), *_hard(arm, greedy)]
        for name, arm in _arms(finding, greedy)
    ]
    return header, rows


def _arms(finding: LosslessFinding, greedy: GreedyFinding) -> Iterator[tuple[str, Arm]]:
    yield from ((finding.profile, arm) for arm in greedy.arms)
    yield from ((f"{finding.against} (control)", arm) for arm in greedy.control)


def _gaps(arm: Arm) -> tuple[str, str]:
    gaps = sorted(d.gap for d in arm.divergences if d.gap is not None)
    if not gaps:
        return "–", "–"
    middle = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2
    return fixed(middle, 3), fixed(gaps[-1], 3)


def _hard(arm: Arm, greedy: GreedyFinding) -> tuple[str, str]:
    beyond = sum(is_hard(d, greedy.tolerance) for d in arm.divergences)
    return str(beyond), str(sum(d.gap is None for d in arm.divergences))


def hard_table(greedy: GreedyFinding) -> Table:
    """The divergences beyond the tolerance, the widest first; at most twenty."""
    header = ["prompt", "in flight", "after tokens", "baseline's token", "profile's token", "gap, nat"]
    header += ["gap without drafts, nat", "step"]
    worst = sorted(greedy.hard_divergences, key=lambda d: -(float("inf") if d.gap is None else d.gap))
    rows = [
        [
            short_name(d.prompt),
            str(d.concurrency),
            str(d.position),
            str(d.wanted),
            "end" if d.got < 0 else str(d.got),
            "not among 20" if d.gap is None else fixed(d.gap, 2),
            "not among 20" if d.own_gap is None else fixed(d.own_gap, 2),
            {0: "not known", 1: "no draft accepted"}.get(d.in_chunk, "accepted drafts"),
        ]
        for d in worst[:MANY_HARD]
    ]
    return header, rows


def tolerance_words(greedy: GreedyFinding) -> str:
    """Where the tolerance comes from, and how often a correct server fails."""
    found = greedy.tolerance
    source = (
        f"{CONTROL_FACTOR:g} times the 95th percentile of the gaps that the baseline shows against itself, within the "
        f"bounds for {found.kind}"
        if found.source == "control"
        else f"the bound for {found.kind}, as the baseline leaves itself too seldom to calibrate it"
    )
    return (
        f"Tolerance {found.nat:.2g} nat: {source}. Two prompts beyond it say “differs”. If a correct server "
        f"shows one with probability {percent(ACCEPTED_FAULT_RATE, 1)} per prompt, it fails this part in "
        f"{percent(false_alarm_rate(greedy.hard.n), 1)} of tests."
    )


def equality_table(finding: LosslessFinding) -> Table:
    """Answers equal token for token."""
    header = ["answers of", "in flight", "equal token for token", "median first parting, tokens"]
    if finding.greedy is None:
        return header, []
    rows = []
    for name, arm in _arms(finding, finding.greedy):
        firsts = sorted(arm.first_divergences)
        middle = f"{(firsts[(len(firsts) - 1) // 2] + firsts[len(firsts) // 2]) / 2:g}" if firsts else "–"
        rows.append([name, str(arm.concurrency), f"{arm.exact} of {arm.prompts}", middle])
    total = [
        [f"{finding.profile}, both", "", rate_words(finding.greedy.exact), ""],
        [f"{finding.against} (control), both", "", rate_words(finding.greedy.control_exact), ""],
    ]
    return header, [*rows, *total]


def position_table(sampling: SamplingFinding, k: int) -> Table:
    """A row per position of the sampled answers, the worst of its prefixes in each column."""
    header = [
        "position",
        "comes from",
        "prefixes",
        "distance",
        "95 % bound",
        "p after Holm",
        "seen with 80 % power from",
    ]
    header += ["control: distance", "control: p after Holm"]
    rows = []
    for position in sorted({place.position for place in sampling.places}):
        mine = [place for place in sampling.places if place.position == position]
        calm = [place for place in sampling.control if place.position == position]
        rows.append(
            [
                str(position),
                origin(position, k),
                str(len(mine)),
                fixed(max(p.tv for p in mine), 3),
                fixed(max(p.tv_upper95 for p in mine), 3),
                p_words(min(p.p_holm for p in mine)),
                fixed(max(p.detectable_tv for p in mine), 3),
                fixed(max((p.tv for p in calm), default=None), 3),
                p_words(min((p.p_holm for p in calm), default=None)),
            ]
        )
    return header, rows


def place_table(places: Sequence[PlaceFinding]) -> Table:
    """Every place."""
    header = ["prefix", "position", "answers", "distance", "95 % bound", "p", "p after Holm", "80 % power from"]
    rows = [
        [
            short_name(place.prefix),
            str(place.position),
            f"{place.n[0]:,} and {place.n[1]:,}",
            fixed(place.tv, 3),
            fixed(place.tv_upper95, 3),
            p_words(place.p),
            p_words(place.p_holm),
            fixed(place.detectable_tv, 3),
        ]
        for place in places
    ]
    return header, rows


def origin(position: int, k: int) -> str:
    """Where the token at a sampled answer's position can come from."""
    if position == 1:
        return "no draft (prefill)"
    return "drafts" if position <= k + 1 else "drafts or the bonus token"


def sampling_words(sampling: SamplingFinding) -> str:
    """The test in words, with margin and power."""
    if not sampling.places:
        return f"Nothing was compared: {sampling.reason}."
    power = max(place.detectable_tv for place in sampling.places)
    return (
        f"{sampling.samples:,} answers of each server after each prefix; every prefix and position is a place. "
        f"Differs: p below {sampling.alpha:g} after Holm over {len(sampling.places)} places. Same quality needs "
        f"more: at every place the 95 % bound of the distance must lie below the margin of {sampling.margin:g}. "
        f"Power: a distance of {fixed(power, 3)} would have been seen with 80 % wherever it lay. Control: the baseline "
        "sampled once more."
    )


def drafted_table(finding: LosslessFinding) -> Table:
    """How many of the tested tokens came from accepted drafts."""
    header = ["part", "drafts", "drafted tokens", "tokens from accepted drafts", "share of all tokens", "needed"]
    found = [("temperature 0", finding.greedy.drafted)] if finding.greedy else []
    found += [(f"temperature {s.temperature:g}", s.drafted) for s in finding.sampling]
    rows = [[where, *_drafted_cells(drafted), f"{FEWEST_ACCEPTED}"] for where, drafted in found]
    return header, rows


def _drafted_cells(drafted: Drafted) -> list[str]:
    least = "at least " if drafted.at_least else ""
    counts = (drafted.drafts, drafted.draft_tokens, drafted.accepted_tokens)
    cells = ["not known" if count is None else f"{least}{count:,.0f}" for count in counts]
    return [*cells, percent(drafted.share)]


def head_facts(finding: LosslessFinding, about: LosslessAbout) -> Facts:
    """The few facts that stand beside the answer."""
    servers = list(about.servers.values())
    differences = server_differences(finding.against, about.servers)
    return [
        ("Model", servers[0].model if servers else "unknown"),
        ("vLLM", ", ".join(dict.fromkeys(s.version or "unknown" for s in servers)) or "unknown"),
        ("Engine", about.engine),
        ("Profile", f"{finding.profile}, K = {about.plan.k}"),
        ("Against", finding.against),
        ("Workload", about.workload),
        *([("The servers differ", "; ".join(differences))] if differences else []),
    ]


def how_facts(finding: LosslessFinding, about: LosslessAbout) -> Facts:
    """How the test was made."""
    plan, greedy = about.plan, finding.greedy
    facts = [
        ("Tested", about.created_at),
        ("loadgen", about.loadgen_version),
        ("Engine", _engine(about)),
        ("Prompts", f"{greedy.exact.n // max(1, len(greedy.arms)) if greedy else 0} of {about.workload}"),
        ("Output cap", f"{about.max_tokens} tokens" if about.max_tokens else "the workload's own"),
        (
            "In flight",
            f"temperature 0: 1 and {plan.wide}; samples: {plan.concurrency}, control {plan.concurrency // 4}",
        ),
        ("Number format", f"{plan.kind}, which bounds the tolerance"),
    ]
    if plan.temperatures:
        sent = "each sample had one of its own" if plan.seeds.sent else "none were sent"
        facts += [
            ("Samples", f"{plan.samples:,} per server and prefix, {plan.prefixes} prefixes wanted"),
            ("Seeds", f"{sent}: {plan.seeds.why}" if plan.seeds.why else sent),
        ]
    return [*facts, ("Seed of the test", str(plan.seed))]


def _engine(about: LosslessAbout) -> str:
    """The engine and why it was taken; a reason that begins with its name says it already."""
    reason = about.engine_reason.rstrip(".")
    return reason if reason.startswith(about.engine) else f"{about.engine} ({reason})"


def rate_words(rate: Rate, what: str = "") -> str:
    """`2 of 40 prompts (95 % CI 0.6 % to 16.9 %)`."""
    return f"{rate.count} of {rate.n}{f' {what}' if what else ''} ({interval_words(rate)})"


def p_words(p: float | None) -> str:
    """A p-value with two digits."""
    return "n/a" if p is None else f"{p:.2g}"
