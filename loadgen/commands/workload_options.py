"""Workload options of a command line, as workloads: lengths drawn per prompt, traces, and what to say of them."""

from collections.abc import Iterable
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.workloads.base import Workload
from loadgen.workloads.lengths import parse_lengths
from loadgen.workloads.registry import get_workload, trace_workload, with_lengths, workload_warnings


def chosen_workload(
    name: str, input_lengths: str | None = None, output_lengths: str | None = None, trace: Path | None = None
) -> Workload:
    """The workload of that name or file; with the lengths of a trace, or lengths drawn per prompt (`uniform:100-400`),
    which follow from the seed alone: the same for every profile. UsageError for what does not go together.
    """
    drawn = input_lengths is not None or output_lengths is not None
    if trace is not None:
        if drawn:
            raise UsageError("--trace brings its own lengths: leave --input-lengths and --output-lengths out.")
        return trace_workload(trace, name)
    if not drawn:
        return get_workload(name)
    inputs, outputs = (None if text is None else parse_lengths(text) for text in (input_lengths, output_lengths))
    return with_lengths(name, inputs, outputs)


def workload_notes(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """What a user should know before believing results on these workloads."""
    return tuple(f"{workload.name}: {text}" for workload in workloads for text in workload_warnings(workload))
