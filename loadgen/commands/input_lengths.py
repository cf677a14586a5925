"""Which prompt lengths surely cannot be measured, as far as it is known without a server."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile
from loadgen.profiles.values import whole
from loadgen.workloads.base import PromptRequest, Workload
from loadgen.workloads.lengths import ratio_counter

CHARS_PER_TOKEN = (2.0, 4.0, 8.0)
"""From the least to the most that tokenizers give for the workloads' texts; the middle one is told of."""
OPTION = "max-model-len"


def require_lengths(lengths: Sequence[int], workloads: Iterable[Workload], seed: int) -> None:
    """UsageError for a length that a workload has no prompt of under any usual tokenizer."""
    for workload in workloads:
        for length in lengths:
            faults = [_fault(workload, length, seed, ratio) for ratio in CHARS_PER_TOKEN]
            if all(faults):
                raise UsageError(f"--input-tokens {length}: {faults[1]}.")


def require_room(
    lengths: Sequence[int], profiles: Iterable[ServerProfile], server_args: Sequence[str], longest: int | None
) -> None:
    """UsageError for a prompt that fills a server's context, which its profile or a `--server-arg` says; `longest` is
    what holds where neither does, None where that is unknown.
    """
    given = _from_arguments(server_args)
    for profile in profiles:
        stated = {name.replace("_", "-"): value for name, value in profile.settings.items()}.get(OPTION)
        limit = given or _tokens(stated) or longest
        if limit is not None and max(lengths) >= limit:
            raise UsageError(
                f"--input-tokens {max(lengths)} leaves no room for an answer: {profile.name} has a context of {limit} "
                f"tokens ({OPTION})."
            )


def _fault(workload: Workload, length: int, seed: int, chars_per_token: float) -> UsageError | None:
    wanted = PromptRequest(seed=seed, level=1, repeat=0, count=1, purpose="probe", input_tokens=length)
    try:
        workload.prompts(wanted, ratio_counter(chars_per_token))
    except UsageError as error:
        return error
    return None


def _tokens(value: object) -> int | None:
    """As vLLM reads it (16k); None for `auto` and what is no number."""
    number = whole(value)
    return number if number is not None and number > 0 else None


def _from_arguments(words: Sequence[str]) -> int | None:
    """`--max-model-len 4096`, as one word or two, the last one that is given."""
    found = None
    for word, after in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        value = value if equals else after
        if name.replace("_", "-") == f"--{OPTION}":
            found = _tokens(value)
    return found
