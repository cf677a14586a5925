"""What each vLLM release can do for speculation: the one table of facts by version.

Read from the sources of the wheels 0.10.0 to 0.32.0; pull-request numbers are vllm-project/vllm's.
"""

import re

Version = tuple[int, int, int]

NEWEST_KNOWN: Version = (0, 32, 0)
OLDEST_KNOWN: Version = (0, 10, 0)

METHOD_SINCE: dict[str, Version] = {
    "mtp": (0, 11, 0),
    "suffix": (0, 11, 1),  # PR 25784
    "draft_model": (0, 15, 0),  # PR 24322; NotImplementedError in V1 before
    "ngram_gpu": (0, 18, 0),  # PR 29184
    "dflash": (0, 20, 0),
    "custom_class": (0, 22, 0),
    "dspark": (0, 25, 0),
}
"""First release of a method in the V1 engine; a method that is not here is in every release from OLDEST_KNOWN on."""

FIELD_SINCE: dict[str, Version] = {
    "parallel_drafting": (0, 16, 0),  # PR 32887
    "synthetic_acceptance_rates": (0, 20, 0),
    "synthetic_acceptance_length": (0, 20, 0),
    "num_speculative_tokens_per_batch_size": (0, 24, 0),  # PR 32374
    "use_heterogeneous_vocab": (0, 25, 0),
    "enable_adaptive_verification": (0, 28, 0),  # PR 47808
    "disable_eagle_block_drop": (0, 32, 0),
}
"""First release whose `speculative-config` takes the field; older ones refuse to start."""

ASYNC_SCHEDULING_BY_DEFAULT: Version = (0, 14, 0)
ASYNC_OFF_METHODS = frozenset({"ngram", "suffix", "medusa", "custom_class"})
"""vLLM switches async scheduling off for them, so that they lose more than drafting costs."""

ASYNC_OFF_UP_TO: dict[str, Version] = {"draft_model": (0, 26, 0)}
"""Last release that was seen to switch it off for a method that keeps it in 0.32 (an H200 with 0.26)."""

DISABLE_BY_BATCH_SIZE_REMOVED: Version = (0, 17, 0)  # PR 35060; never read by V1 before (issue 25112)
RUNNER_V2_BY_DEFAULT: Version = (0, 25, 0)
RUNNER_V1_UP_TO: dict[str, Version] = {"draft_model": (0, 26, 0)}
"""Last release that was seen to put a method on model runner V1 by itself (an H200 with 0.26): V1 heeds a schedule."""
SCHEDULE_HEEDED_BY_RUNNER_V2: Version = (0, 32, 0)  # issue 51510
CPU_SPECULATION_SINCE: Version = (0, 20, 0)
CPU_EAGLE_SINCE: Version = (0, 22, 0)  # PR 42468

SCHEDULE_KILLS_ENGINE = frozenset({"suffix", "medusa"})
"""Their proposers assert K = maximum: the first step with another K ends the engine, and nothing checks at start."""

MAX_DRAFT_TOKENS = 128
"""Draft tokens per request and step that the rejection sampler of model runner V1 has room for."""


def parse_version(text: str) -> Version | None:
    """(major, minor, patch) of a version as `/version` says it (`0.32.0`, `0.26.0+cu130`, `v0.9`), or None."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text.strip())
    if not match:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def version_text(version: Version) -> str:
    """`0.32.0`."""
    return ".".join(str(part) for part in version)


def instead_of_batch_size_limit(version: Version | None) -> str:
    """What to use in the place of `disable_by_batch_size`, as a half-sentence, by version (None: unknown)."""
    schedule = "num_speculative_tokens_per_batch_size (a list of [first, last, K])"
    if version is None:
        return f"use {schedule} from vLLM 0.24 on; before, route high load to a server without speculation"
    if version >= FIELD_SINCE["num_speculative_tokens_per_batch_size"]:
        return f"use {schedule}"
    return (
        f"vLLM {version_text(version)} has no such switch: update to 0.24 or newer and use {schedule}, "
        "or route high load to a server without speculation"
    )
