"""The same-quality verdict as JSON, for `--json` and the run folder's `lossless/result.json`."""

from dataclasses import dataclass
from typing import Any

from loadgen.analysis.lossless_model import LosslessFinding
from loadgen.analysis.lossless_servers import server_differences
from loadgen.report.lossless_text import sentence
from loadgen.store.codec import builtins
from loadgen.store.model import ServerFacts
from loadgen.sweep.lossless_plan import LosslessPlan

SCHEMA = 2


@dataclass(frozen=True)
class LosslessAbout:
    """How a same-quality test was made."""

    run_id: str
    created_at: str
    loadgen_version: str
    argv: tuple[str, ...]
    engine: str
    engine_reason: str
    simulated: bool
    workload: str
    max_tokens: int | None
    plan: LosslessPlan
    servers: dict[str, ServerFacts]
    """By profile, as it came up last."""


def lossless_json(finding: LosslessFinding, about: LosslessAbout) -> dict[str, Any]:
    """The finding with its sentence, and how it was made."""
    differences = list(server_differences(finding.against, about.servers))
    head = {"schema": SCHEMA, "answer": sentence(finding), "server_differences": differences}
    return {**head, **builtins(about), **builtins(finding)}
