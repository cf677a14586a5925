"""JSON lines with `prompt`, `messages`, `text` or `token_ids`, and optionally `max_tokens`."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from loadgen.workloads.base import Message
from loadgen.workloads.formats.common import Fault, FilePrompt, FilePrompts, json_lines, read_bytes, reason_of, refuse


class MessageRecord(BaseModel):
    """One message of a line; data sets carry further keys, which are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)
    role: Literal["system", "user", "assistant"]
    content: str


class PromptRecord(BaseModel):
    """One line."""

    model_config = ConfigDict(extra="ignore", strict=True)
    prompt: str | None = None
    messages: list[MessageRecord] | None = None
    text: str | None = None
    token_ids: list[int] | None = None
    max_tokens: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_input(self) -> Self:
        given = {name: getattr(self, name) for name in ("prompt", "messages", "text", "token_ids")}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "has none of them"
            raise ValueError(f"needs one of prompt, messages, text, token_ids, but {found}")
        name, value = next(iter(given.items()))
        if not value or (isinstance(value, str) and not value.strip()):
            raise ValueError(f"{name} is empty")
        if self.messages and not any(message.content.strip() for message in self.messages):
            raise ValueError("messages are empty")
        return self

    def prompt_of(self) -> FilePrompt:
        """The prompt: `prompt` becomes a user message, `text` is completed as it stands."""
        messages = tuple(Message(m.role, m.content) for m in self.messages) if self.messages else None
        if self.prompt is not None:
            messages = (Message("user", self.prompt),)
        token_ids = tuple(self.token_ids) if self.token_ids else None
        return FilePrompt(messages, self.text, token_ids, self.max_tokens)


def read(path: Path) -> FilePrompts:
    """The file's prompts in their order; UsageError with line numbers and reasons if any line is faulty."""
    faults: list[Fault] = []
    prompts: list[FilePrompt] = []
    for number, value in json_lines(read_bytes(path), faults):
        try:
            prompts.append(PromptRecord.model_validate(value).prompt_of())
        except ValidationError as error:
            faults.append(Fault(f"line {number}", reason_of(error)))
    refuse(path, faults)
    return FilePrompts(tuple(prompts))
