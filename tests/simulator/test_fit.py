import json
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.analysis.steps import StepGroup
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.simulator.config import engine_config
from loadgen.simulator.fit import SPREAD, fit_hardware, step_seconds
from loadgen.simulator.hardware import PRESETS, Hardware
from loadgen.simulator.hardware_file import find_hardware, hardware_text
from loadgen.simulator.measured import ApiCost, MeasuredStep

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"
CONFIGS = {name: engine_config(load_profile(name, PROFILES)) for name in ("baseline", "ngram")}
BASE = PRESETS["rtx5090-8b-int4"]


def steps_of(hardware: Hardware) -> list[MeasuredStep]:
    found = []
    for level in (1, 2, 4, 8, 16, 32):
        for name, drafted, tokens in (("baseline", 0.0, 1.0), ("ngram", 2.1, 1.8)):
            carrying = min(0.5, 0.01 * level)
            kinds = (StepGroup(1 - carrying, 0.0, 0.0), StepGroup(carrying, 1.2, 480.0))
            step = MeasuredStep(name, level, level, drafted, 400.0, tokens, 1.0, kinds)
            found.append(replace(step, step_time_s=step_seconds(hardware, CONFIGS[name], step)))
    return found


def test_a_run_of_another_machine_is_fitted_within_the_goal() -> None:
    other = PRESETS["l4-8b-int4"]
    found = fit_hardware(BASE, steps_of(other), CONFIGS, "baseline", "mine")
    assert found.points == 12
    assert found.step_error < 0.05
    assert found.speedup_error is not None
    assert found.speedup_error < 0.05
    assert found.hardware.bandwidth == pytest.approx(other.bandwidth, rel=0.15)
    assert {"bandwidth", "flops"} <= set(found.told)


def test_its_own_machine_comes_back() -> None:
    found = fit_hardware(BASE, steps_of(BASE), CONFIGS, "baseline", "mine")
    assert found.step_error < 1e-6
    assert all(getattr(found.hardware, name) == pytest.approx(getattr(BASE, name), rel=1e-3) for name in SPREAD)


def test_every_level_is_also_foretold_without_it() -> None:
    found = fit_hardware(BASE, steps_of(PRESETS["l4-8b-int4"]), CONFIGS, "baseline", "mine")
    assert [(one.profile, one.level) for one in found.errors] == [("ngram", level) for level in (1, 2, 4, 8, 16, 32)]
    assert found.held_out_error is not None
    assert 0.0 < found.held_out_error < 0.05


def test_steps_of_decoding_alone_say_nothing_of_launches_without_a_graph() -> None:
    steps = [replace(step, groups=(StepGroup(1.0, 0.0, 0.0),)) for step in steps_of(BASE)]
    plain = [
        replace(step, step_time_s=step_seconds(BASE, CONFIGS["baseline"], step))
        for step in steps
        if step.profile == "baseline"
    ]
    both = plain + [replace(step, profile="other") for step in plain]
    found = fit_hardware(BASE, both, {"baseline": CONFIGS["baseline"], "other": CONFIGS["baseline"]}, "baseline", "x")
    assert "eager_launch_s" not in found.told
    assert found.spread["eager_launch_s"] == pytest.approx(SPREAD["eager_launch_s"], rel=0.01)


def test_the_way_to_the_engine_is_what_is_left_of_the_ttft_of_one_alone() -> None:
    slow = replace(BASE, request_latency_s=0.02)
    steps = steps_of(slow)
    config = CONFIGS["baseline"]
    only = replace(steps[0], groups=(StepGroup(0.0, 0.0, 0.0), StepGroup(1.0, 1.2, 480.0)))
    ttft = step_seconds(slow, config, only) + 0.02 + 2e-3 + 5e-5
    alone = replace(steps[0], turnaround_s=ttft)
    steps[0] = replace(alone, step_time_s=step_seconds(slow, config, alone))
    found = fit_hardware(BASE, steps, CONFIGS, "baseline", "x", ApiCost(5e-5, 0.0, 2e-3, 12, 0.0))
    assert found.hardware.request_latency_s == pytest.approx(0.02, rel=0.02)
    assert (found.hardware.api_chunk_s, found.hardware.api_request_s) == (5e-5, 2e-3)


def test_one_profile_or_few_steps_are_too_little() -> None:
    with pytest.raises(ValueError, match="step times"):
        fit_hardware(BASE, [step for step in steps_of(BASE) if step.profile == "ngram"], CONFIGS, "baseline", "x")
    with pytest.raises(ValueError, match="step times"):
        fit_hardware(BASE, steps_of(BASE)[:4], CONFIGS, "baseline", "x")


def test_a_written_machine_reads_back(tmp_path: Path) -> None:
    machine = replace(BASE, name="mine", flops=1e14, host_step_s=1e-3)
    path = tmp_path / "m.json"
    path.write_text(hardware_text(machine, BASE.name), encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")).keys() == {"base", "name", "flops", "host_step_s"}
    assert find_hardware(str(path)) == machine
    assert find_hardware("l4-8b-int4") is PRESETS["l4-8b-int4"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"base": "nothing"}', "base"),
        ('{"base": "l4-8b-int4", "speed": 3}', "speed"),
        ('{"base": "l4-8b-int4", "flops": "fast"}', "flops"),
        ('{"base": "l4-8b-int4", "flops": -1}', "flops"),
        ('{"base": "l4-8b-int4", "name": 3}', "name"),
        ('{"base": "l4-8b-int4", "bandwidth": 0}', "bandwidth: 0; no machine"),
        ('{"base": "l4-8b-int4", "flops": 0}', "flops: 0; no machine"),
        ('{"base": "l4-8b-int4", "kv_bytes_per_token": 0}', "kv_bytes_per_token: 0; no machine"),
        ('{"base": "l4-8b-int4", "weight_bytes": 1e300}', "weight_bytes: 1e[+]300; no machine"),
        ('{"base": "l4-8b-int4", "host_step_s": 1e300}', "host_step_s: 1e[+]300; no machine"),
        ('{"base": "l4-8b-int4", "knee_sharpness": 0}', "knee_sharpness: 0; no machine"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=word):
        find_hardware(str(path))


def test_an_unknown_name_lists_the_presets() -> None:
    with pytest.raises(UsageError, match="l4-8b-int4"):
        find_hardware("gpu")
