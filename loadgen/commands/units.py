"""Quantities with their units on the command line, read strictly: a bare number says nothing about its unit."""

import math
import re

from loadgen.analysis.capacity_model import METRICS, Slo
from loadgen.errors import UsageError

NUMBER = r"(\d+(?:\.\d+)?)"
DURATIONS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
RATES = {"s": 1.0, "min": 60.0, "h": 3600.0}


def duration(text: str, option: str) -> float:
    """Seconds of `500ms`, `0.5s`, `2min`; UsageError for anything else, a bare number too."""
    found = re.fullmatch(NUMBER + "(us|ms|s|min|h)", text.strip())
    if not found:
        raise UsageError(f"{option} {text!r} is no duration; write a number with its unit, like 500ms, 0.5s or 2min.")
    return _above_zero(float(found[1]) * DURATIONS[found[2]], text, option)


def rate(text: str, option: str = "--rate") -> float:
    """Requests per second of `12/s`, `720/min`, `3600/h`; UsageError for anything else."""
    found = re.fullmatch(NUMBER + "/(s|min|h)", text.strip())
    if not found:
        raise UsageError(f"{option} {text!r} is no rate; write a number per time, like 12/s or 720/min.")
    return _above_zero(float(found[1]) / RATES[found[2]], text, option)


def share(text: str, option: str) -> float:
    """0.2 of `20%` or `0.2`; UsageError outside 0 to 1 (above 1 a plain number is a forgotten %)."""
    found = re.fullmatch(NUMBER + "(%?)", text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else math.nan
    if not 0 <= value <= 1:
        raise UsageError(f"{option} {text!r} is no share; write it like 20% or 0.2.")
    return value


def slo(text: str) -> Slo:
    """An objective from `ttft_p99=500ms`; UsageError names what there is."""
    name, sign, limit = text.partition("=")
    found = re.fullmatch(r"([a-z0-9]+)_p(\d{1,2}(?:\.\d+)?)", name.strip())
    if not sign or not found or found[1] not in METRICS or not 0 < float(found[2]) < 100:
        raise UsageError(
            f"--slo {text!r} is no objective; write it like ttft_p99=500ms, with one of {', '.join(METRICS)} and a "
            "percentile from p1 to p99.9."
        )
    return Slo(found[1], float(found[2]) / 100, duration(limit, f"--slo {name.strip()}"))


def slos(texts: list[str]) -> tuple[Slo, ...]:
    """The objectives; UsageError if there is none, or if one percentile has two limits."""
    found = tuple(slo(text) for text in texts)
    names = [one.name for one in found]
    if not found:
        raise UsageError("--slo is missing; say what your users need, like --slo ttft_p99=500ms --slo tpot_p99=30ms.")
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"--slo {double} is given twice; give each percentile one limit.")
    return found


def mix(text: str) -> tuple[tuple[str, float], ...]:
    """(workload, share) of `code-edit=0.7,chat=0.3`, shares that add up to 1; UsageError otherwise."""
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    pairs = tuple((name.strip(), share(value, f"--mix {name.strip()}")) for name, _, value in parts)
    names = [name for name, _ in pairs]
    if not pairs or not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--mix {text!r} is no mix; write each workload once, like code-edit=0.7,chat=0.3.")
    total = math.fsum(part for _, part in pairs)
    if abs(total - 1) > 1e-6 or min(part for _, part in pairs) <= 0:
        raise UsageError(f"--mix {text} adds up to {total:g}; give shares above 0 that add up to 1.")
    return pairs


def _above_zero(value: float, text: str, option: str) -> float:
    if value <= 0 or not math.isfinite(value):
        raise UsageError(f"{option} {text!r} is not above 0.")
    return value
