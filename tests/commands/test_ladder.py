"""A ladder of K: derived profiles, what they are, and where a schedule cannot be priced."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis.ladder import LadderArm
from loadgen.commands.sweep_ladder import AUTO, HALF, make_ladder
from loadgen.commands.sweep_setup import SweepRequest, make_experiment, start_requests
from loadgen.engines.simulator import SimulatorEngine
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.store.folder import create_run

PROFILES = Path("server_profiles")


def raw(profile: Any) -> dict[str, Any]:
    assert profile.speculative is not None
    return dict(profile.speculative.raw)


def test_a_static_server_for_each_k() -> None:
    ladder = make_ladder((load_profile("ngram", PROFILES),), "4,1,2,2", schedule_costs=False)
    assert [profile.name for profile in ladder.profiles] == ["ngram-k1", "ngram-k2", "ngram-k4"]
    assert ladder.arms == {f"ngram-k{k}": LadderArm("ngram", k) for k in (1, 2, 4)}
    assert [raw(profile)["num_speculative_tokens"] for profile in ladder.profiles] == [1, 2, 4]


def test_schedule_costs_add_each_k_and_0_as_constant_schedules_under_the_largest_k() -> None:
    ladder = make_ladder((load_profile("ngram", PROFILES),), "2,4", schedule_costs=True)
    constant = {p.name: raw(p) for p in ladder.profiles if "schedule" in p.name}
    assert {name: one["num_speculative_tokens_per_batch_size"] for name, one in constant.items()} == {
        "ngram-schedule-k0": [[1, 256, 0]],
        "ngram-schedule-k2": [[1, 256, 2]],
        "ngram-schedule-k4": [[1, 256, 4]],
    }
    assert {one["num_speculative_tokens"] for one in constant.values()} == {4}
    assert ladder.arms is not None
    assert ladder.arms["ngram-schedule-k0"] == LadderArm("ngram", 0, constant_schedule=True)


@pytest.mark.parametrize(("name", "version"), [("suffix", None), ("ngram-gpu", None), ("ngram", "0.23.0")])
def test_where_a_schedule_ends_the_engine_or_is_unknown_none_is_started(name: str, version: str | None) -> None:
    ladder = make_ladder((load_profile(name, PROFILES),), HALF, schedule_costs=True, version=version)
    assert not [profile for profile in ladder.profiles if "schedule" in profile.name]
    assert f"{name}: schedules are not measured." in ladder.warnings[0]


@pytest.mark.parametrize(("k", "found"), [(AUTO, [1, 2, 4]), (HALF, [2, 4]), ("3", [3])])
def test_auto_is_the_profiles_k_and_its_halves(k: str, found: list[int]) -> None:
    ladder = make_ladder((load_profile("ngram", PROFILES),), k, schedule_costs=False)
    assert [raw(profile)["num_speculative_tokens"] for profile in ladder.profiles] == found


@pytest.mark.parametrize("k", ["0", "x", "", "1.5"])
def test_a_wrong_ladder_is_one_sentence(k: str) -> None:
    with pytest.raises(UsageError, match="--k"):
        make_ladder((load_profile("ngram", PROFILES),), k, schedule_costs=False)


def test_a_profile_without_speculation_has_no_ladder() -> None:
    with pytest.raises(UsageError, match="--k has nothing to vary"):
        make_ladder((load_profile("baseline-sync", PROFILES),), AUTO, schedule_costs=False)


def test_costs_without_a_ladder_are_refused() -> None:
    with pytest.raises(UsageError, match="give one too"):
        make_experiment(SweepRequest(schedule_costs=True), SimulatorEngine())


def test_the_run_folder_keeps_the_source_so_that_a_resumed_run_derives_the_same(tmp_path: Path) -> None:
    request = SweepRequest(k="2,4", workload="code-edit")
    experiment = make_experiment(request, SimulatorEngine())
    assert experiment.plan.profiles == ("baseline", "ngram-k2", "ngram-k4")
    folder = create_run("ladder", tmp_path)
    start_requests(experiment, request, folder)
    kept = {path.name for path in (folder.path / "profiles").iterdir()}
    assert kept == {"baseline.yaml", "ngram.yaml", "ngram-k2.yaml", "ngram-k4.yaml"}
    again = make_experiment(
        SweepRequest(k="2,4", workload="code-edit", profiles_folder=str(folder.path / "profiles")), SimulatorEngine()
    )
    assert again.plan == experiment.plan
    assert [profile.settings for profile in again.profiles] == [profile.settings for profile in experiment.profiles]
