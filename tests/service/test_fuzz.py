"""Schemathesis asks whatever the API's own description allows, and more; in an environment of its own (.venv-fuzz)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from loadgen.store.folder import RunFolder

pytestmark = pytest.mark.faults
PROGRAM = Path(".venv-fuzz/bin/schemathesis")
TOKEN = "a-token-for-the-fuzzer-alone"
SECONDS = 60


def test_the_api_keeps_to_its_description(
    serve: Callable[..., httpx2.Client], make_run: Callable[..., RunFolder], tmp_path: Path
) -> None:
    if not PROGRAM.exists():
        pytest.skip("no schemathesis here; `make test-faults` sets it up")
    make_run(("queued", "started", "completed"))
    # Sweeps are fake here, else this would measure what the fuzzer thinks of; the short queue shows 429 too.
    client = serve(token=TOKEN, max_queue=3)
    command = [
        *(str(PROGRAM.absolute()), "run", f"{client.base_url}/openapi.json".replace("//openapi", "/openapi")),
        *("--header", f"Authorization: Bearer {TOKEN}", "--max-time", str(SECONDS), "--request-timeout", "20"),
        *("--seed", "1", "--continue-on-failure", "--max-failures", "5", "--no-color"),
        # A stream of events ends when its sweep does; test_routes watches one.
        *("--exclude-path", "/api/runs/{run}/events"),
        # Which names are known (profiles, engines, runs) depends on the machine, so a well-formed body may be refused.
        *("--exclude-checks", "positive_data_acceptance"),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert client.get("/health").status_code == 200
