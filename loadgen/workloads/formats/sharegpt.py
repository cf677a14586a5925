"""ShareGPT's JSON: a list of conversations, of which the first question is asked."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadgen.errors import UsageError
from loadgen.workloads.formats.common import Fault, FilePrompt, FilePrompts, read_bytes, reason_of, refuse, user

_ASKING = {"human", "user"}


class TurnRecord(BaseModel):
    """One turn."""

    model_config = ConfigDict(extra="ignore")
    sender: str = Field(alias="from")
    value: str


class ConversationRecord(BaseModel):
    """One conversation."""

    model_config = ConfigDict(extra="ignore")
    conversations: list[TurnRecord]


def read(path: Path) -> FilePrompts:
    """The first human turn of each conversation; those that have none are left out, with a warning that counts them."""
    try:
        entries = json.loads(read_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"workload file {path} is not JSON in UTF-8 ({error}); give ShareGPT's JSON file") from error
    if not isinstance(entries, list):
        raise UsageError(f"workload file {path} is no list of conversations; give ShareGPT's JSON file")
    faults: list[Fault] = []
    prompts: list[FilePrompt] = []
    without = 0
    for number, entry in enumerate(entries, start=1):
        try:
            turns = ConversationRecord.model_validate(entry).conversations
        except ValidationError as error:
            faults.append(Fault(f"entry {number}", reason_of(error)))
            continue
        asked = next((turn.value for turn in turns if turn.sender in _ASKING and turn.value.strip()), None)
        if asked is None:
            without += 1
        else:
            prompts.append(user(asked))
    refuse(path, faults)
    left_out = f"{without} of {len(entries)} conversations in {path.name} have no human turn and were left out"
    return FilePrompts(tuple(prompts), (left_out,) if without else ())
