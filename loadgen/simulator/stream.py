"""Counter-based random numbers: a value follows from a key and a position, in any order and any process."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """64 well-mixed bits of a 64-bit integer (SplitMix64's finaliser; Steele, Lea and Flood 2014)."""
    z = (value + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def key_of(*parts: int | str) -> int:
    """A 64-bit key of integers and strings; order matters. The same in every process."""
    key = 0
    for part in parts:
        if isinstance(part, str):
            for at in range(0, len(part), 7):
                key = mix(key ^ int.from_bytes(part[at : at + 7].encode("utf-8"), "big") & _MASK)
        else:
            key = mix(key ^ (part & _MASK))
    return key


def key_of_ids(ids: Iterable[int]) -> int:
    """A 64-bit key of a token sequence (vectorised polynomial over mixed ids, so that long prompts stay cheap)."""
    array = np.fromiter(ids, dtype=np.uint64)
    if array.size == 0:
        return key_of(0)
    at = np.arange(array.size, dtype=np.uint64)
    mixed = _mix_array(array ^ _mix_array(at))
    return key_of(int(np.bitwise_xor.reduce(mixed)), int(array.size))


def uniforms(key: int, count: int, start: int = 0) -> Floats:
    """`count` numbers in [0, 1) for positions start, start + 1, …: shape (count,)."""
    at = np.arange(start, start + count, dtype=np.uint64)
    bits = _mix_array(at * np.uint64(_GOLDEN) + np.uint64(key & _MASK))
    out: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return out


def uniform(key: int) -> float:
    """One number in [0, 1) for a key."""
    return (mix(key) >> 11) * 2.0**-53


def _mix_array(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = values + np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
