"""requests.parquet: one row per request, for pandas, DuckDB and the like."""

from itertools import islice
from pathlib import Path
from typing import Any

from loadgen.errors import UsageError
from loadgen.store.folder import RunFolder
from loadgen.store.requests import StoredRequest

ROWS_A_GROUP = 20_000


def write_parquet(folder: RunFolder, *, simulated: bool = False) -> Path:
    """RUN/requests.parquet, written whole, group by group, so that memory stays bounded. UsageError without pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            "requests.parquet needs pyarrow, which the extra parquet brings: pip install 'loadgen[parquet]'."
        ) from None
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()])
    # A file that is carried elsewhere still says where its figures are from.
    schema = schema.with_metadata({"loadgen.simulated": str(simulated).lower()})
    path = folder.path / "requests.parquet"
    beside = path.with_name(".requests.parquet.part")
    rows = map(row_of, folder.requests())
    try:
        with parquet.ParquetWriter(beside, schema, compression="zstd") as writer:
            while batch := list(islice(rows, ROWS_A_GROUP)):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
        beside.replace(path)
    except (OSError, ValueError) as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written ({error}); free some space, or repair requests.jsonl.") from error
    return path


COLUMNS = {
    "profile": "string",
    "workload": "string",
    "input_tokens": "int32",
    "temperature": "float64",
    "level": "int32",
    "repeat": "int32",
    "session": "int32",
    "phase": "string",
    "prompt_id": "string",
    "worker": "int32",
    "outcome": "string",
    "error": "string",
    "start_s": "float64",
    "end_s": "float64",
    "queued_s": "float64",
    "scheduled_s": "float64",
    "ttft_s": "float64",
    "tpot_s": "float64",
    "e2e_s": "float64",
    "prompt_tokens": "int32",
    "output_tokens": "int32",
    "token_source": "string",
    "finish_reason": "string",
    "chunks": "int32",
}
"""Column → pyarrow type. Times in seconds, `start_s` and such on the run's monotonic clock."""


def row_of(stored: StoredRequest) -> dict[str, Any]:
    """One row; None where the request does not have it."""
    key, record = stored.cell, stored.record
    return {
        "profile": key.profile,
        "workload": key.condition.workload,
        "input_tokens": key.condition.input_tokens,
        "temperature": key.condition.temperature,
        "level": key.level,
        "repeat": key.repeat,
        "session": key.session,
        "phase": stored.phase,
        "prompt_id": record.prompt_id,
        "worker": record.worker,
        "outcome": record.outcome.value,
        "error": record.error,
        "start_s": record.start_s,
        "end_s": record.end_s,
        "queued_s": record.queued_s,
        "scheduled_s": record.scheduled_s,
        "ttft_s": record.ttft_s,
        "tpot_s": record.tpot_s,
        "e2e_s": record.e2e_s,
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": record.output_tokens,
        "token_source": record.token_source,
        "finish_reason": record.finish_reason,
        "chunks": len(stored.chunk_deltas) or sum(stored.chunk_bins),
    }
