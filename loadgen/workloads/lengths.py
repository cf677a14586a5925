"""Token counts without a server, and length distributions."""

import math

from loadgen.workloads.base import TokenCounter


def ratio_counter(chars_per_token: float) -> TokenCounter:
    """A counter that takes a token for so many characters: 3.9 fits English text in today's tokenizers, 3.2 code."""

    def count(text: str) -> int:
        return math.ceil(len(text) / chars_per_token)

    return count
