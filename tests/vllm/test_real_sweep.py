"""`make test-vllm`: the numbers of a real vLLM on this machine's CPU, checked against each other."""

import json
import math

import jsonschema
import pytest

from loadgen.analysis.acceptance import pool
from loadgen.metrics.model import CounterDelta
from loadgen.report.summary import json_schema
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellResult

pytestmark = pytest.mark.vllm
Z_99 = 2.576


def cells_of(run: RunFolder, profile: str, workload: str | None = None) -> list[CellResult]:
    found = [cell for cell in run.cells() if cell.key.profile == profile]
    return [cell for cell in found if workload in (None, cell.key.condition.workload)]


def pooled(run: RunFolder, workload: str) -> CounterDelta:
    total = pool(cell.idle for cell in cells_of(run, "ngram", workload))
    assert total is not None
    return total


def test_every_cell_was_measured(real_run: RunFolder) -> None:
    keys = {(c.key.profile, c.key.condition.workload, c.key.level) for c in real_run.cells()}

    assert keys == {(p, w, n) for p in ("baseline", "ngram") for w in ("code-edit", "chat") for n in (1, 2, 4)}
    assert all(cell.outcomes["ok"] > 0 for cell in real_run.cells())
    manifest = real_run.manifest()
    assert (manifest.engine, manifest.simulated) == ("process", False)


def test_the_clients_tokens_are_the_servers_idle_to_idle(real_run: RunFolder) -> None:
    for cell in real_run.cells():
        assert cell.idle is not None
        assert cell.idle.generation_tokens is not None
        assert cell.client_tokens_total == pytest.approx(cell.idle.generation_tokens, rel=0.01), str(cell.key)


def test_the_servers_really_ran_what_the_profiles_say(real_run: RunFolder) -> None:
    effective = {server.profile: server.effective for server in real_run.servers()}

    assert {server.version for server in real_run.servers()} == {"0.32.0"}
    assert effective["baseline"]["async_scheduling"] is True
    assert effective["ngram"]["async_scheduling"] is False
    assert {facts["graph_mode"] for facts in effective.values()} == {"NONE"}
    assert {facts["model_runner"] for facts in effective.values()} == {"v1"}


def test_drafts_are_there_for_ngram_and_absent_for_baseline(real_run: RunFolder) -> None:
    for cell in cells_of(real_run, "baseline"):
        assert cell.idle is not None
        assert cell.idle.drafts is None  # no such metric: never 0
    for workload in ("code-edit", "chat"):
        total = pooled(real_run, workload)
        assert total.drafts is not None
        assert total.drafts > 0
        assert total.acceptance_rate is not None
        assert 0 < total.acceptance_rate <= 1
        assert total.mean_acceptance_length is not None
        assert 1 < total.mean_acceptance_length <= 5


def test_code_edits_accept_more_than_chat(real_run: RunFolder) -> None:
    """By accepted tokens per draft: their distribution follows from the counts per position, and with it the variance.

    Drafts of one request are alike, so that the interval is somewhat too narrow: it is taken at 99 %.
    """
    code, chat = (_accepted_per_draft(pooled(real_run, workload)) for workload in ("code-edit", "chat"))

    difference = code[0] - chat[0]
    margin = Z_99 * math.sqrt(code[1] + chat[1])

    assert difference - margin > 0, f"code-edit {code}, chat {chat}: {difference:.2f} ± {margin:.2f} tokens per draft"


def test_code_edits_get_more_tokens_per_step(real_run: RunFolder) -> None:
    code, chat = (pooled(real_run, workload).tokens_per_step for workload in ("code-edit", "chat"))

    assert code is not None
    assert chat is not None
    assert code > chat >= 1


def test_report_and_summary_are_valid(real_run: RunFolder) -> None:
    summary = json.loads((real_run.path / "summary.json").read_text(encoding="utf-8"))

    jsonschema.validate(summary, json_schema())
    assert summary["simulated"] is False
    assert summary["vllm_version"] == "0.32.0"
    html = (real_run.path / "report.html").read_text(encoding="utf-8")
    assert "code-edit" in html
    assert "SIMULATED" not in html


def _accepted_per_draft(total: CounterDelta) -> tuple[float, float]:
    """(mean, variance of the mean) of accepted tokens per draft, from the share of drafts that reached each place."""
    survival = total.acceptance_per_position
    drafts = total.drafts or 0.0
    assert drafts >= 30
    mean = sum(survival)
    # E[A²] = Σ (2i − 1) P(A ≥ i), i = 1, 2, …
    second = sum((2 * position + 1) * share for position, share in enumerate(survival))
    return mean, (second - mean**2) / drafts
