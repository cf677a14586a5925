"""Finds a workload by its name, or makes one from a file."""

from loadgen.errors import UsageError
from loadgen.workloads.base import Workload
from loadgen.workloads.code_edit import CodeEdit
from loadgen.workloads.extract_json import ExtractJson
from loadgen.workloads.hashing import prompts_sha256
from loadgen.workloads.lab_l31 import LabL31
from loadgen.workloads.mixed import Mixed
from loadgen.workloads.open_question import Chat, Creative
from loadgen.workloads.rag_quote import RagQuote
from loadgen.workloads.random_tokens import RandomTokens
from loadgen.workloads.source_text import Summarise, Translate

__all__ = ["get_workload", "list_workloads", "prompts_sha256"]

_BUILT_IN: tuple[Workload, ...] = (
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
    """The built-in workload of that name; UsageError names the known ones."""
    for workload in _BUILT_IN:
        if workload.name == name_or_path:
            return workload
    known = ", ".join(name for name, _ in list_workloads())
    raise UsageError(f"there is no workload {name_or_path!r}; take one of {known}")


def list_workloads() -> list[tuple[str, str]]:
    """(name, description) of every built-in workload."""
    return [(workload.name, workload.description) for workload in _BUILT_IN]
