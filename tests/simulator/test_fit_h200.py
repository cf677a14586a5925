"""The fit of the run that was measured on an H200 with vLLM 0.26, and the preset that comes from it."""

from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.commands.simulate_fit import fit_cells, fitted, run_configs
from loadgen.simulator.cost import CostModel, StepShape
from loadgen.simulator.fit import SPREAD, FittedHardware, LevelError
from loadgen.simulator.hardware import PRESETS
from loadgen.simulator.measured import api_cost, measured_steps
from loadgen.store.folder import RunFolder
from loadgen.store.model import ServerFacts

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "h200" / "dense8b"
API = ("api_chunk_s", "api_token_s", "api_request_s", "request_latency_s")


class AsIfNewest(RunFolder):
    """The same run, its servers saying that they are vLLM 0.32."""

    def servers(self) -> tuple[ServerFacts, ...]:
        return tuple(replace(server, version="0.32.0") for server in super().servers())


@pytest.fixture(scope="module")
def fit() -> FittedHardware:
    return fitted(RunFolder(EXAMPLE), "h200-8b")


def test_the_fit_knows_that_0_26_takes_async_scheduling_from_a_draft_model(fit: FittedHardware) -> None:
    mistaken = fitted(AsIfNewest(EXAMPLE), "h200-8b")
    assert fit.points == 27
    assert fit.step_error == pytest.approx(0.030, abs=0.003)
    assert mistaken.step_error > 2 * fit.step_error


def test_levels_are_foretold_that_were_left_out(fit: FittedHardware) -> None:
    def left_out(one: LevelError) -> float:
        assert one.held_out is not None
        return abs(one.held_out)

    assert fit.speedup_error == pytest.approx(0.074, abs=0.005)
    # At 256 the baseline's API server holds its engine up; what lies below is foretold within 10 %.
    assert max(left_out(one) for one in fit.errors if one.level <= 128) < 0.10
    assert max(left_out(one) for one in fit.errors) < 0.15


def test_without_its_kinds_of_steps_the_run_is_met_badly(fit: FittedHardware) -> None:
    """What the fit lacked before: steps with prompts leave the graphs of 512 tokens, at another load each."""
    assert {"eager_launch_s", "flops", "host_step_s"} <= set(fit.told)
    steps = {(step.profile, step.level): step for step in measured_steps(fit_cells(RunFolder(EXAMPLE)))}
    configs = run_configs(RunFolder(EXAMPLE))
    first_without_graph: dict[str, int] = {}
    for (profile, level), step in sorted(steps.items(), key=lambda item: item[0][1]):
        prompt = next(group for group in step.groups if group.prompts)
        tokens = round(step.batch * (1 + step.drafted) + prompt.prompt_tokens)
        shape = StepShape(tokens, round(step.batch), round(prompt.prompt_tokens), 1, 1, 0, -1, 0, 0, 0)
        if CostModel(configs[profile], fit.hardware).launch_mode(shape) == "eager":
            first_without_graph.setdefault(profile, level)
    assert first_without_graph == {"layer-draft-k3": 16, "layer-draft-k1": 32, "baseline": 64}


def test_cells_in_which_the_engine_waited_are_left_out() -> None:
    kept = fit_cells(RunFolder(EXAMPLE))
    assert len(kept) == 79
    assert sum(cell.key.level == 256 and cell.key.profile == "baseline" for cell in kept) == 1
    found = api_cost(kept)
    assert found is not None
    assert found.rms_error < 0.08


def test_the_preset_is_this_fit(fit: FittedHardware) -> None:
    preset = PRESETS["h200-dense8b"]
    for name in (*SPREAD, *API):
        assert getattr(preset, name) == pytest.approx(getattr(fit.hardware, name), rel=0.01), name
    assert preset.source.startswith(fit.hardware.source)
    assert preset.steps_ahead == fit.hardware.steps_ahead == 1
