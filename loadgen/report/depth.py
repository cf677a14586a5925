"""How many tokens each profile drafts, as its server really does."""

from loadgen.analysis.ladder import ladder_of
from loadgen.store.model import Manifest


def depths(manifest: Manifest) -> dict[str, int]:
    """Profile name → its K. A constant schedule's is the K of its one range, and not `num_speculative_tokens`, which
    is only the largest K that a schedule may name.
    """
    rungs = ladder_of(manifest)
    known = manifest.num_speculative_tokens
    return {name: rungs[name].k if name in rungs else k for name, k in known.items()}


def depth_words(manifest: Manifest, profile: str) -> str:
    """` (K = 4)`; empty for a profile that does not speculate."""
    k = depths(manifest).get(profile)
    return "" if k is None else f" (K = {k})"
