"""Spec-Bench's question.jsonl: `question_id`, `category`, `turns`; the first turn of each question is asked."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadgen.workloads.formats.common import (
    Fault,
    FilePrompt,
    FilePrompts,
    json_lines,
    read_bytes,
    reason_of,
    refuse,
    user,
)


class QuestionRecord(BaseModel):
    """One line; later turns need the answers to earlier ones, so they are not asked."""

    model_config = ConfigDict(extra="ignore")
    question_id: int | str
    category: str
    turns: list[str] = Field(min_length=1)


def read(path: Path) -> FilePrompts:
    """The first turn of each question; UsageError with line numbers and reasons if any line is faulty."""
    faults: list[Fault] = []
    prompts: list[FilePrompt] = []
    for number, value in json_lines(read_bytes(path), faults):
        try:
            question = QuestionRecord.model_validate(value)
        except ValidationError as error:
            faults.append(Fault(f"line {number}", reason_of(error)))
            continue
        if question.turns[0].strip():
            prompts.append(user(question.turns[0]))
        else:
            faults.append(Fault(f"line {number}", "the first turn is empty"))
    refuse(path, faults)
    return FilePrompts(tuple(prompts))
