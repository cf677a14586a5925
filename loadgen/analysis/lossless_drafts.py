"""Did the test see drafts at all? A server whose drafts are never accepted passes every comparison."""

from loadgen.analysis.lossless_model import Drafted

FEWEST_ACCEPTED = 100
"""Tokens from accepted drafts; none wrong among n bounds the wrong ones at 3 / n (the rule of three): 3 %."""
FAULT_DRAFTS = 100
"""From so many drafts on, not one accepted token is a fault of the server."""


GREEDY_CURE = "take a workload that repeats its input (code-edit), more --prompts, or a larger --max-tokens"


def not_tested_because(drafted: Drafted, cure: str = GREEDY_CURE) -> str | None:
    """The reason, one clause with its cure; None if enough tokens came from accepted drafts."""
    if drafted.drafts is None or drafted.accepted_tokens is None:
        return "the server has no counters of speculative decoding, so nobody knows whether a draft was accepted"
    if drafted.drafts >= FAULT_DRAFTS and drafted.accepted_tokens == 0:
        return (
            f"not one token of {drafted.drafts:.0f} drafts was accepted, which is a fault of the server, not of the "
            "prompts (vLLM 0.32 on a CPU does so at temperatures above 0)"
        )
    if drafted.accepted_tokens < FEWEST_ACCEPTED:
        return (
            f"only {drafted.accepted_tokens:.0f} tokens came from accepted drafts and {FEWEST_ACCEPTED} are needed; "
            f"{cure}"
        )
    return None
