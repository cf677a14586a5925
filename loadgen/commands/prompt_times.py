"""Each request's time per token, read from a run folder for the pairs by prompt."""

from collections.abc import Iterator

from loadgen.analysis.by_prompt import PromptTime
from loadgen.load.record import Outcome
from loadgen.store.folder import RunFolder


def prompt_times(folder: RunFolder) -> Iterator[PromptTime]:
    """The measured requests that ended well and have two tokens or more."""
    for stored in folder.requests():
        record = stored.record
        tpot = record.tpot_s
        if stored.phase != "measure" or record.outcome is not Outcome.OK or tpot is None:
            continue
        chunks = len(stored.chunk_deltas)
        yield PromptTime(stored.cell, record.prompt_id, tpot, record.output_tokens / chunks if chunks else None)
