"""`loadgen plan --measure`: real servers (the simulator's), real open-loop requests, stored and used."""

import json
import shutil
import sys
from pathlib import Path

from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.engines.choose import EngineRequest
from loadgen.store.codec import builtins
from loadgen.store.open_cells import open_cells

ROOT = Path(__file__).resolve().parents[2]


def test_rates_are_measured_stored_and_planned_with(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from tools.make_large_run import Size, write_large_run
    finally:
        sys.path.remove(str(ROOT))
    run = tmp_path / "one"
    write_large_run(run, Size(levels=(1, 4), profiles=("ngram",), repeats=3, chunks=3_000))
    request = SweepRequest(profile="ngram", workload="code-edit", max_tokens=16)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["settings"] = {"request": builtins(request), "engine": EngineRequest(name="simulator").stored()}
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (run / "profiles").mkdir()
    for name in ("baseline", "ngram"):
        shutil.copy(ROOT / "server_profiles" / f"{name}.yaml", run / "profiles")
    words = ["--slo", "ttft_p50=5s", "--rate", "20/s", "--rates", "6/s", "--seconds", "2", "--json"]
    done = CliRunner().invoke(app, ["plan", str(run), *words])
    assert done.exit_code == 0, done.output
    cells = open_cells(run)
    assert {(cell.profile, cell.rate_per_s) for cell in cells} == {("baseline", 6.0), ("ngram", 6.0)}
    # the schedule follows from the seed, so that both servers got the same starts
    assert len({len(cell.ttft_s) for cell in cells}) == 1
    assert all(cell.output_tokens > 0 and cell.in_flight_mean > 0 for cell in cells)
    assert all(ttft is not None and 0 < ttft < 5 for cell in cells for ttft in cell.ttft_s)
    plan = json.loads(done.stdout)
    for offer in plan["offers"]:
        late = any(f"{offer['setting']} on code-edit at 6/s is left out" in note for note in plan["notes"])
        assert offer["setting"] == "schedule" or late or [one["rate_per_s"] for one in offer["open_loop"]] == [6.0]


def test_a_run_that_no_sweep_made_cannot_be_measured(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from tools.make_large_run import Size, write_large_run
    finally:
        sys.path.remove(str(ROOT))
    write_large_run(tmp_path / "one", Size(levels=(1,), profiles=("ngram",), repeats=1, chunks=500))
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "one"), "--slo", "ttft_p50=5s", "--measure"])
    assert "was not made by a sweep" in str(done.exception)
