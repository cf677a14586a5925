"""Workload options of `loadgen sweep` and `loadgen load`."""

from pathlib import Path

import pytest

from loadgen.commands.sweep_setup import SweepRequest, make_experiment, require_startable
from loadgen.commands.workload_options import chosen_workload, workload_notes
from loadgen.engines.simulator import SimulatorEngine
from loadgen.errors import UsageError
from loadgen.workloads.base import PromptRequest
from loadgen.workloads.lengths import DrawnLengths, ratio_counter

PROFILES = str(Path(__file__).parent.parent.parent / "server_profiles")
WANTED = PromptRequest(seed=1, level=4, repeat=0, count=20, max_tokens=512)


def test_forced_lengths_are_drawn_per_prompt_and_the_same_for_every_profile() -> None:
    request = SweepRequest(
        workload="code-edit,chat",
        input_lengths="uniform:200-600",
        output_lengths="uniform:16-64",
        ignore_eos=True,
        profiles_folder=PROFILES,
    )
    experiment = make_experiment(request, SimulatorEngine())
    assert experiment.plan.sampling.ignore_eos
    assert set(experiment.workloads) == {"code-edit", "chat"}
    assert [condition.input_tokens for condition in experiment.plan.conditions] == [400, 400]
    first, second = (
        make_experiment(request, SimulatorEngine()).workloads["chat"].prompts(WANTED, ratio_counter(4.0))
        for _ in range(2)
    )
    # a prompt list knows no profile: what one server gets, the next one gets
    assert first == second
    caps = [prompt.max_tokens for prompt in first]
    assert len(set(caps)) > 10
    assert all(16 <= cap <= 64 for cap in caps)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"input_lengths": "many"}, "tells no length"),
        ({"input_lengths": "uniform:9-3"}, "no range"),
        ({"input_lengths": "uniform:200-600", "input_tokens": "500"}, "give one of them"),
        ({"output_lengths": "64", "workload": "no-such-workload"}, "no workload"),
    ],
)
def test_wrong_lengths_are_one_sentence(options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_experiment(SweepRequest(profiles_folder=PROFILES, **options), SimulatorEngine())  # type: ignore[arg-type]  # only texts here


def test_a_trace_brings_its_own_lengths_and_says_what_was_changed(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 3, "output_length": 7}\n', encoding="utf-8")
    workload = chosen_workload("code-edit", trace=trace)
    assert any("lengthened" in note for note in workload_notes([workload]))
    with pytest.raises(UsageError, match="own lengths"):
        chosen_workload("code-edit", output_lengths="64", trace=trace)
    assert isinstance(chosen_workload("chat", "300"), DrawnLengths)
    assert not workload_notes([chosen_workload("chat")])


@pytest.mark.parametrize("output_lengths", [None, "uniform:16-64"])
def test_random_tokens_warn_before_a_sweep(output_lengths: str | None) -> None:
    request = SweepRequest(workload="random", output_lengths=output_lengths, profiles_folder=PROFILES)
    assert any("acceptance" in warning for warning in make_experiment(request, SimulatorEngine()).warnings)


@pytest.mark.parametrize(("count", "level"), [(1, 1), (30, 16), (100, 64)])
def test_a_file_with_too_few_prompts_for_the_highest_level_is_refused_before_a_server_starts(
    tmp_path: Path, count: int, level: int
) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(f'{{"prompt": "question {index}"}}\n' for index in range(count)), encoding="utf-8")
    for options, fits in (("", False), ("?salt", True), ("?repeat", True)):
        request = SweepRequest(workload=f"{path}{options}", levels=str(level), profiles_folder=PROFILES)
        experiment = make_experiment(request, SimulatorEngine())
        if fits:
            require_startable(SimulatorEngine(), experiment, request)
            continue
        with pytest.raises(UsageError, match="are needed; give a larger file"):
            require_startable(SimulatorEngine(), experiment, request)
