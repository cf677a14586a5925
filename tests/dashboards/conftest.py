import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.store.folder import RunFolder
from loadgen.store.model import Condition, Manifest

LEVELS = (1, 16)


def level(concurrency: int, speedup: float) -> dict[str, Any]:
    return {
        "concurrency": concurrency,
        "valid": True,
        "batch": concurrency * 0.97,
        "baseline_batch": concurrency * 0.98,
        "speedup": speedup,
        "ci95": [speedup - 0.05, speedup + 0.05],
        "tpot_speedup": speedup,
        "tokens_per_s": 150.0 * speedup * concurrency,
        "baseline_tokens_per_s": 150.0 * concurrency,
        "ttft_p50_s": 0.05,
        "baseline_ttft_p50_s": 0.04,
        "tpot_p50_s": 0.006 / speedup,
        "baseline_tpot_p50_s": 0.006,
        "acceptance_rate": 0.4,
        "mean_acceptance_length": 2.6,
        "tokens_per_step": 2.1,
        "step_time_ratio": 2.1 / speedup,
        "checks": [{"name": "lockstep", "voids": False, "cause": "x", "cure": "y"}],
    }


def summary(run_id: str) -> dict[str, Any]:
    """Code-edit turns at 11.5, chat never pays."""
    crossing = {"concurrency": 11.5, "ci95": [9.0, 14.0], "level_below": 1, "level_above": 16, "direction": "down"}
    found = {"status": "found", "crossings": [crossing]}
    never = {"status": "never_pays", "crossings": []}
    return {
        "schema": 1,
        "run_id": run_id,
        "model": "Qwen/Qwen3-8B",
        "against": "baseline",
        "conditions": [
            {
                "workload": workload,
                "input_tokens": 300,
                "temperature": 0.0,
                "profiles": {
                    "ngram": {
                        "levels": [level(c, s) for c, s in zip(LEVELS, speedups, strict=True)],
                        "break_even": {"output_tokens_per_s": verdict, "tpot": verdict},
                    }
                },
            }
            for workload, speedups, verdict in (("code-edit", (1.7, 0.9), found), ("chat", (0.95, 0.8), never))
        ],
        "recommendation": {"value": [[1, 10, 4], [11, 64, 0]]},
    }


@pytest.fixture
def make_summary() -> Callable[[str], dict[str, Any]]:
    return summary


@pytest.fixture(scope="session")
def manifest() -> Manifest:
    return Manifest(
        run_id="2026-01-01T00-00-00Z-ngram",
        created_at="2026-01-01T00:00:00.000Z",
        loadgen_version="0",
        argv=(),
        engine="simulator",
        engine_reason="",
        simulated=True,
        profiles=("baseline", "ngram"),
        against="baseline",
        methods={"baseline": "none", "ngram": "ngram"},
        num_speculative_tokens={"ngram": 4},
        conditions=(Condition("code-edit", 300, 0.0), Condition("chat", 300, 0.0)),
        levels=LEVELS,
        repeats=3,
        sessions=1,
        seed=1,
        quick=False,
        order="together",
        sampling={},
        hardware={},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, manifest: Manifest) -> Path:
    """A runs folder with one finished run."""
    folder = tmp_path_factory.mktemp("stage") / "runs"
    run = RunFolder(folder / manifest.run_id)
    run.path.mkdir(parents=True)
    run.write_manifest(manifest)
    run.append_event("started", "measuring begins")
    run.append_event("completed", "all cells measured")
    run.close()
    (run.path / "summary.json").write_text(json.dumps(summary(manifest.run_id)))
    return folder
