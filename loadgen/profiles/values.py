"""Values of vLLM's options: what no option takes, and the numbers that loadgen itself reads."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

AUTO = -1
"""`max-model-len: auto`: vLLM takes the longest that fits."""
_WHOLE: dict[str, int] = {
    "max-num-seqs": 1 << 16,
    "max-num-batched-tokens": 1 << 24,
    "max-model-len": 1 << 31,
    "block-size": 1 << 16,
    "num-gpu-blocks-override": 1 << 31,
    "max-cudagraph-capture-size": 1 << 16,
}
"""Option → the most that a server could have memory for; more is a slip of the hand, and would take ours."""
_SUFFIXED = ("max-num-batched-tokens", "max-model-len")
_FLAGS = ("async-scheduling", "enable-prefix-caching", "enforce-eager")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([kKmMgGtT]?)")


def whole(value: object) -> int | None:
    """The whole number: 4, "4", or with vLLM's suffixes 16k (16,000) and 16K (16,384); `auto` is AUTO.

    None for anything else, truth values too. Source: `human_readable_int` in vLLM 0.32's utils/argparse_utils.py.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    if value.strip().lower() in ("auto", "-1"):
        return AUTO
    found = _NUMBER.fullmatch(value.strip())
    if found is None:
        return None
    number, suffix = found.groups()
    if suffix in _DECIMAL:
        return round(float(number) * _DECIMAL[suffix])
    return None if "." in number else int(number) * _BINARY.get(suffix, 1)


def fault_of(name: str, value: object) -> str | None:
    """What is wrong with an option's value, as the rest of a sentence (`is True; give …`); None if nothing surely is.

    `name` has dashes. vLLM has hundreds of options: only those that loadgen reads are looked into, and what none takes.
    """
    flag = name.removeprefix("no-")
    if name in _WHOLE:
        return _whole_fault(name, value)
    if name == "gpu-memory-utilization":
        return None if 0 < _number(value) <= 1 else f"is {short(value)}; give a share above 0 and up to 1, such as 0.9"
    if flag in _FLAGS and not isinstance(value, bool):
        return f"is {short(value)}; give true or false"
    if name == "compilation-config":
        return _compilation_fault(value)
    if name == "cudagraph-capture-sizes":
        return _sizes_fault(value)
    return _unsayable(value)


def short(value: object) -> str:
    """The value as an error shows it, at most 40 signs of it."""
    try:
        text = repr(value)
    except ValueError:  # more digits than Python writes out
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:37]}…"


def _number(value: object) -> float:
    """0.9 and "0.9"; NaN, which no bound holds, for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _whole_fault(name: str, value: object) -> str | None:
    number, most = whole(value), _WHOLE[name]
    if isinstance(value, str) and name not in _SUFFIXED and not value.strip().isdecimal():
        number = None
    if number == AUTO and name == "max-model-len":
        return None
    if number is None or not 1 <= number <= most:
        return f"is {short(value)}; give a whole number from 1 to {most}"
    return None


def _compilation_fault(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return _unsayable(value)
    sizes = value.get("cudagraph_capture_sizes")
    fault = None if sizes is None else _sizes_fault(sizes)
    if fault:
        return f"has cudagraph_capture_sizes, which {fault}"
    largest = value.get("max_cudagraph_capture_size")
    fault = None if largest is None else _whole_fault("max-cudagraph-capture-size", largest)
    return f"has max_cudagraph_capture_size, which {fault}" if fault else _unsayable(value)


def _sizes_fault(value: object) -> str | None:
    most = _WHOLE["max-cudagraph-capture-size"]
    if isinstance(value, list):
        good = [size for size in value if isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= most]
        if len(good) == len(value):
            return None
    return f"is {short(value)}; give a list of whole numbers from 1 to {most}"


def _unsayable(value: object) -> str | None:
    """What no option of vLLM takes, however deep it stands."""
    for one in _leaves(value):
        if isinstance(one, float) and not math.isfinite(one):
            return f"holds {short(one)}, which is no number; write a finite one"
        if isinstance(one, int) and not -(1 << 63) <= one < 1 << 63:
            return f"holds {short(one)}, which is more than 64 bits hold; write a smaller number"
        if isinstance(one, str) and any(0xD800 <= ord(sign) <= 0xDFFF for sign in one):
            return f"holds {short(one)}, half of a character; write the whole one"
        if one is not None and not isinstance(one, str | int | float):
            return f"holds {short(one)}, which YAML reads as a {type(one).__name__}; put it in quotes"
    return None


def _leaves(value: object) -> Iterable[Any]:
    """Every value below lists and mappings, and the mappings' keys."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
