"""Finds a workload by its name, or makes one from a file."""

from pathlib import Path

from loadgen.errors import UsageError
from loadgen.workloads.base import Workload
from loadgen.workloads.code_edit import CodeEdit
from loadgen.workloads.extract_json import ExtractJson
from loadgen.workloads.file_workload import FileOptions, FileWorkload
from loadgen.workloads.formats.traces import read_trace
from loadgen.workloads.hashing import prompts_sha256
from loadgen.workloads.lab_l31 import LabL31
from loadgen.workloads.lengths import DrawnLengths, IndexedWorkload, LengthDistribution
from loadgen.workloads.loaders import load_prompts
from loadgen.workloads.mixed import Mixed
from loadgen.workloads.open_question import Chat, Creative
from loadgen.workloads.rag_quote import RagQuote
from loadgen.workloads.random_tokens import RandomTokens
from loadgen.workloads.source_text import Summarise, Translate
from loadgen.workloads.trace_workload import TraceWorkload

__all__ = [
    "get_workload",
    "list_workloads",
    "prompts_sha256",
    "trace_workload",
    "with_lengths",
    "workload_warnings",
]

BuiltIn = CodeEdit | Chat | RagQuote | Summarise | ExtractJson | Creative | Translate | LabL31 | Mixed | RandomTokens
_BUILT_IN: tuple[BuiltIn, ...] = (
    CodeEdit(),
    Chat(),
    RagQuote(),
    Summarise(),
    ExtractJson(),
    Creative(),
    Translate(),
    LabL31(),
    Mixed(((CodeEdit(), 3), (Chat(), 3), (RagQuote(), 2), (Summarise(), 1), (ExtractJson(), 1))),
    RandomTokens(),
)


def get_workload(name_or_path: str) -> Workload:
    """The built-in workload of that name, or the prompts of that file; UsageError names what there is.

    Behind a path stand its options: `prompts.jsonl?salt`, `questions.jsonl?repeat`, `data.jsonl?format=spec-bench`.
    """
    built_in = _find(name_or_path)
    if built_in is not None:
        return built_in
    place, _, options = name_or_path.partition("?")
    path = Path(place)
    if not (path.suffix or path.exists()):
        raise _unknown(name_or_path)
    chosen = FileOptions.parse(options)
    return FileWorkload(path, load_prompts(path, chosen.file_format), chosen)


def list_workloads() -> list[tuple[str, str]]:
    """(name, description) of every built-in workload."""
    return [(workload.name, workload.description) for workload in _BUILT_IN]


def with_lengths(name: str, inputs: LengthDistribution | None, outputs: LengthDistribution | None) -> Workload:
    """The built-in workload of that name with lengths drawn per prompt; a file's lengths are fixed: UsageError."""
    return DrawnLengths(_indexed(name), inputs, outputs)


def trace_workload(path: Path, name: str) -> TraceWorkload:
    """The lengths of the trace at `path` with the texts of the built-in workload `name`."""
    return TraceWorkload(read_trace(path), _indexed(name))


def workload_warnings(workload: Workload) -> tuple[str, ...]:
    """What a user should know before believing results on this workload; empty for most."""
    return tuple(getattr(workload, "warnings", ()))


def _indexed(name: str) -> IndexedWorkload:
    found = _find(name)
    if found is None:
        raise _unknown(name)
    return found


def _find(name: str) -> BuiltIn | None:
    return next((workload for workload in _BUILT_IN if workload.name == name), None)


def _unknown(name: str) -> UsageError:
    known = ", ".join(name for name, _ in list_workloads())
    return UsageError(
        f"there is no workload {name!r}; take one of {known}, or the path of a file (.jsonl, .json, .parquet)"
    )
