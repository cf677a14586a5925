"""Helpers of the workload tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.workloads.base import Prompt, PromptRequest, TokenCounter
from loadgen.workloads.lengths import ratio_counter


@pytest.fixture
def count_tokens() -> TokenCounter:
    return ratio_counter(3.7)


@pytest.fixture
def request_of() -> Callable[..., PromptRequest]:
    def make(**changes: object) -> PromptRequest:
        fields: dict[str, object] = {"seed": 7, "level": 8, "repeat": 0, "count": 20, **changes}
        return PromptRequest(**fields)  # type: ignore[arg-type]  # keyword arguments of a test

    return make


@pytest.fixture
def text_of() -> Callable[[Prompt], str]:
    def text(prompt: Prompt) -> str:
        if prompt.messages:
            return "\n".join(message.content for message in prompt.messages)
        return prompt.text or " ".join(map(str, prompt.token_ids or ()))

    return text


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return put
