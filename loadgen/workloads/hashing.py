"""One hash for a prompt list: two profiles were measured on the same prompts only if it is the same."""

import hashlib
import json
from collections.abc import Iterable

from loadgen.workloads.base import Prompt, prompt_hash_input


def prompts_sha256(prompts: Iterable[Prompt]) -> str:
    """SHA-256 in hex over everything of the prompts that reaches a server, in their order."""
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(json.dumps(prompt_hash_input(prompt), ensure_ascii=False, sort_keys=True).encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()
