"""The same-quality verdict as JSON, for `--json` and the run folder's `lossless/result.json`."""

from collections.abc import Mapping
from typing import Any

from loadgen.analysis.lossless_model import LosslessFinding
from loadgen.report.lossless_text import sentence
from loadgen.store.codec import builtins

SCHEMA = 1


def lossless_json(finding: LosslessFinding, about: Mapping[str, Any]) -> dict[str, Any]:
    """The finding with its sentence; `about` tells engine, versions and what was asked."""
    return {"schema": SCHEMA, "answer": sentence(finding), **about, **builtins(finding)}
