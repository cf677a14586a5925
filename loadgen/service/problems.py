"""What goes wrong, as one sentence and a status."""

from fastapi import HTTPException
from pydantic import BaseModel


class Problem(BaseModel):
    """The body of every refusal: one sentence that names the cause and the cure."""

    error: str


class Refusal(HTTPException):
    """A refusal with its status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status_code=status, detail=sentence)


def no_run(name: str) -> Refusal:
    """404: the name is none of a run, or of one that may not be read."""
    del name  # what was sent is not sent back
    return Refusal(404, "There is no such run; GET /api/runs lists them.")
