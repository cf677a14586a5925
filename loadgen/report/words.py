"""Numbers and names as a reader sees them; every report writes them through these functions."""

import math
import re
import unicodedata

from loadgen.analysis.model import BreakEvenStatus, Check, ConditionFinding, Crossing, Estimate, Findings, LevelFinding
from loadgen.store.model import Condition

MISSING = "n/a"

STATUS_WORDS = {
    BreakEvenStatus.FOUND: "turns",
    BreakEvenStatus.PAYS_THROUGHOUT: "pays throughout",
    BreakEvenStatus.NEVER_PAYS: "never pays",
    BreakEvenStatus.INCONCLUSIVE: "inconclusive",
}
MEASURE_WORDS = {
    "output_tokens_per_s": "output tokens/s",
    "tpot": "time per output token",
}


def clean(text: object) -> str:
    """The text on one line without control characters, so that a server's words cannot steer a terminal."""
    printable = (
        " " if ch.isspace() else ch
        for ch in str(text)
        if ch.isspace() or unicodedata.category(ch) not in ("Cc", "Cf", "Cs", "Co")
    )
    return " ".join("".join(printable).split())


def finite(value: float | None) -> float | None:
    """The value, None if it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int = 3) -> str:
    """The value with `digits` significant digits and no exponent up to a million; `n/a` if missing or not finite."""
    value = finite(value)
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}" if decimals <= 9 else f"{value:.{digits - 1}e}"


def fixed(value: float | None, decimals: int) -> str:
    """The value with so many decimals; `n/a` if missing or not finite."""
    value = finite(value)
    return MISSING if value is None else f"{value:,.{decimals}f}"


def percent(value: float | None, decimals: int = 0) -> str:
    """A share as per cent: 0.43 gives `43 %`."""
    value = finite(value)
    return MISSING if value is None else f"{100 * value:.{decimals}f} %"


def milliseconds(seconds: float | None) -> str:
    """Seconds as milliseconds with three significant digits, without the unit."""
    value = finite(seconds)
    return MISSING if value is None else number(1000 * value)


def duration(seconds: float | None) -> str:
    """Seconds for a person: `8 s`, `4 min 10 s`, `2 h 05 min`."""
    value = finite(seconds)
    if value is None:
        return MISSING
    whole = max(0, round(value))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def interval(ci95: tuple[float, float] | None, decimals: int = 2) -> str:
    """`1.17–1.25`; empty without an interval, `n/a` for an end that is not finite."""
    return "" if ci95 is None else f"{fixed(ci95[0], decimals)}–{fixed(ci95[1], decimals)}"


def value_of(estimate: Estimate | None) -> float | None:
    """The estimate's value, None if there is none or it is not finite."""
    return None if estimate is None else finite(estimate.value)


def ratio_of(value: float | None) -> str:
    """A ratio to the baseline: `1.21×`."""
    value = finite(value)
    return MISSING if value is None else f"{value:.2f}×"


def ratio(estimate: Estimate | None) -> str:
    """The estimate as a ratio to the baseline: `1.21×`."""
    return ratio_of(value_of(estimate))


def ratio_with_interval(estimate: Estimate | None) -> str:
    """`1.21× (1.17–1.25)`; only the ratio where n is too small for an interval."""
    bounds = interval(estimate.ci95) if estimate else ""
    return f"{ratio(estimate)} ({bounds})" if bounds else ratio(estimate)


def half_width(estimate: Estimate | None) -> float | None:
    """Half the width of the estimate's 95 % interval, None without one."""
    return None if estimate is None or estimate.ci95 is None else finite((estimate.ci95[1] - estimate.ci95[0]) / 2)


def plus_minus(estimate: Estimate | None) -> str:
    """`1,204 ± 12`: value and half the width of its 95 % interval; only the value without one."""
    value, half = value_of(estimate), half_width(estimate)
    if value is None:
        return MISSING
    decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    shown = fixed(value, decimals)
    return shown if half is None else f"{shown} ± {fixed(half, decimals)}"


def condition_words(condition: Condition) -> str:
    """`code-edit, 512 input tokens, temperature 0`."""
    return f"{clean(condition.workload)}, {condition.input_tokens} input tokens, temperature {condition.temperature:g}"


def crossing_words(crossing: Crossing, *, indicative: bool = False) -> str:
    """`12 (95 % CI 10 to 15)`, to one decimal; `12 (bracket 8 to 15)` without a curve; a curve's numbers alone where
    its interval cannot be trusted.
    """
    centre, low, high = (
        MISSING if finite(value) is None else f"{value:.1f}".removesuffix(".0")
        for value in (crossing.concurrency, *crossing.ci95)
    )
    kind = "bracket " if crossing.kind == "bracket" else "" if indicative else "95 % CI "
    return f"{centre} ({kind}{low} to {high})"


def sentence(text: str) -> str:
    """The text cleaned, with a full stop at its end."""
    cleaned = clean(text)
    return cleaned if cleaned.endswith((".", "!", "?")) else f"{cleaned}."


def compact(value: object) -> str:
    """A schedule as `[[1,8,4],[9,12,2]]`, so that it can be pasted; a mapping as `edges [[1,12,4]]`; else the text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {compact(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(compact(item) for item in value) + "]"
    return str(value)


def level_state(level: LevelFinding) -> str:
    """`void` if the level carries no verdict, `warn` if a check spoke, else `ok`."""
    if not level.valid:
        return "void"
    return "warn" if level.checks or level.voided_cells or level.voided_baseline_cells else "ok"


def level_checks(condition: ConditionFinding) -> list[tuple[str, tuple[int, ...], Check]]:
    """(profile, its levels where the check spoke, check) for each distinct check of a condition, voiding ones first."""
    found: dict[tuple[str, Check], list[int]] = {}
    for profile in condition.profiles:
        for level in profile.levels:
            for check in level.checks:
                found.setdefault((profile.profile, check), []).append(level.concurrency)
    rows = [(name, tuple(levels), check) for (name, check), levels in found.items()]
    return sorted(rows, key=lambda row: not row[2].voids)


def levels_words(levels: tuple[int, ...]) -> str:
    """`level 8` or `levels 1, 8`."""
    return f"level{'s' if len(levels) > 1 else ''} {', '.join(map(str, levels))}"


def headline(findings: Findings) -> str:
    """The answer for a place that has a SIMULATED banner of its own, which the answer then need not repeat."""
    return unmarked(findings.answer) if findings.simulated else clean(findings.answer)


def unmarked(answer: str) -> str:
    """A simulated run's answer without its SIMULATED, cleaned."""
    return re.sub(r"^SIMULATED(, |: )", "", clean(answer))


def advice_words(findings: Findings) -> tuple[str, str, str]:
    """(`Set`, `num_speculative_tokens: 4`, `if fewer than 13 requests run at once`): how sure it is, the setting, for
    which load. Nothing is to be set that is not settled, was never measured as what it is, or did not hold.
    """
    advice = findings.recommendation
    if advice is None:
        return "", "", ""
    out = advice.value is None
    setting = "leave --speculative-config out" if out else f"{clean(advice.setting)}: {clean(compact(advice.value))}"
    marks = ["interrupted"] if findings.interrupted else []
    marks += ["indicative"] if is_indicative(findings) else []
    if advice.verified is False:
        lead = "Does not hold, measured again:"
    elif marks:
        lead = f"Not settled ({', '.join(marks)}{', not measured as a schedule' if advice.candidate else ''}):"
    elif advice.candidate:
        lead = "Candidate, not measured as a schedule:"
    else:
        lead, setting = ("", setting[:1].upper() + setting[1:]) if out else ("Set", setting)
    return lead, setting, clean(advice.when)


_FITTED = re.compile(r"^(.+?): fitted step cost .*; by it speculation pays (.+), measured: inconclusive")
"""The note of `analysis/cost_notes.py` where no turn was found."""


def foretold(findings: Findings) -> list[str]:
    """Where no turn was found and the step cost could be fitted: the turn by that fit, labelled as such."""
    found = (_FITTED.match(note) for note in findings.notes)
    return [f"Foretold by the fitted step cost, not measured: {one[1]} pays {one[2]}." for one in found if one]


def is_indicative(findings: Findings) -> bool:
    """True if a break-even rests on too few repeats or a quick run."""
    return any(b.indicative for c in findings.conditions for p in c.profiles for b in p.break_even.values())


def headline_caveat(findings: Findings) -> str:
    """What weakens the answer as a whole, in one line; empty if nothing does. SIMULATED has its own banner."""
    parts = []
    if findings.interrupted:
        parts.append("interrupted: not all cells were measured")
    if is_indicative(findings):
        parts.append("intervals are indicative: too few repeats or a quick run")
    if any(not level.valid for c in findings.conditions for p in c.profiles for level in p.levels):
        parts.append("some levels carry no verdict")
    return "; ".join(parts)
