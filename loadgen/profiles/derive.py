"""Profiles made from a profile: another K, a schedule."""

from dataclasses import replace
from typing import Any

from loadgen.errors import UsageError
from loadgen.profiles.loader import dump_profile, parse_profile
from loadgen.profiles.model import BatchSchedule, ServerProfile, SpeculativeConfig
from loadgen.profiles.schedule import parse_schedule
from loadgen.profiles.speculative import KEY, SCHEDULE


def with_k(profile: ServerProfile, k: int) -> ServerProfile:
    """The same profile with K = `k` at every batch size (a schedule is dropped), named `NAME-kK`.

    UsageError without speculation, for k < 1, and where synthetic acceptance says nothing about later positions.
    """
    spec = _speculative(profile)
    if k < 1:
        raise UsageError(f"K is {k}; it must be 1 or more (profile baseline has no speculation).")
    raw = {**spec.raw, "num_speculative_tokens": k, **_resized_rates(profile, spec, k)}
    raw.pop(SCHEDULE, None)
    return _rebuilt(profile, raw, f"{profile.name}-k{k}")


def with_schedule(profile: ServerProfile, schedule: BatchSchedule) -> ServerProfile:
    """The same profile with this schedule, named `NAME-schedule`; its K becomes the schedule's largest, so that vLLM
    clamps nothing (an all-zero schedule keeps the profile's K, which must stay 1 or more).
    """
    spec = _speculative(profile)
    checked = parse_schedule(schedule)
    k = max(entry[2] for entry in checked) or spec.num_speculative_tokens
    raw = {**spec.raw, "num_speculative_tokens": k, **_resized_rates(profile, spec, k)}
    raw[SCHEDULE] = [list(entry) for entry in checked]
    return _rebuilt(profile, raw, f"{profile.name}-schedule")


def with_constant_schedule(profile: ServerProfile, k: int, largest: int, max_num_seqs: int) -> ServerProfile:
    """The same profile with the schedule [[1, max, k]] under K = `largest`, named `NAME-schedule-kK`: what one range of
    a longer schedule costs, k = 0 included.
    """
    spec = _speculative(profile)
    if not 0 <= k <= largest or largest < 1:
        raise UsageError(f"K is {k}; it must lie between 0 and {largest}, the largest K of the schedule.")
    raw = {**spec.raw, "num_speculative_tokens": largest, **_resized_rates(profile, spec, largest)}
    raw[SCHEDULE] = [[1, max_num_seqs, k]]
    return _rebuilt(profile, raw, f"{profile.name}-schedule-k{k}")


def _speculative(profile: ServerProfile) -> SpeculativeConfig:
    if profile.speculative is None:
        raise UsageError(f"Profile {profile.name} does not speculate, so it has no K; name a profile that does.")
    return profile.speculative


def _resized_rates(profile: ServerProfile, spec: SpeculativeConfig, k: int) -> dict[str, Any]:
    rates = spec.raw.get("synthetic_acceptance_rates")
    if rates is None:
        return {}
    if k > len(rates) and rates[-1] > 0:
        raise UsageError(
            f"Profile {profile.name} gives synthetic_acceptance_rates for {len(rates)} drafts, so K = {k} needs more "
            "of them; add them in the file."
        )
    return {"synthetic_acceptance_rates": [*rates[:k], *([0.0] * (k - len(rates)))]}


def _rebuilt(profile: ServerProfile, raw: dict[str, Any], name: str) -> ServerProfile:
    # Through the text, so that a derived profile passes the same checks as a written one.
    draft = replace(profile, settings={**profile.settings, KEY: raw})
    return parse_profile(dump_profile(draft), name=name, label=f"profile {name}")
