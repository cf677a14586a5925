"""A run's levels with their single requests."""

from loadgen.analysis.capacity_model import LoadPoint
from loadgen.analysis.capacity_samples import Span, load_points, span_of
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, Condition


def read_points(folder: RunFolder) -> dict[tuple[Condition, str], tuple[LoadPoint, ...]]:
    """(condition, profile) → its levels with their single requests. UsageError if a line cannot be read."""
    spans: dict[CellKey, list[Span]] = {}
    for stored in folder.requests():
        span = span_of(stored.record) if stored.phase == "measure" else None
        if span is not None:
            spans.setdefault(stored.cell, []).append(span)
    return load_points(folder.manifest(), folder.cells(), spans)
