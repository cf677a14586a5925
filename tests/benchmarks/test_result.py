from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figures
from benchmarks.goals import goal_table, goals
from benchmarks.publish import BEGIN, END, PAGE, published
from benchmarks.result import Result, merged, read_result
from benchmarks.scenarios import MEMORY, PACED_32, PACED_256, SATURATED

REFERENCE = Figures(1000, 1.0, 20.0, 0.2, 1000.0, 0.99, 1.0, 2.0, 8, None, 25.0, 0)
OURS = replace(REFERENCE, cpu_s_per_million=23.0, ttft_error_mean_ms=1.5, ttft_error_p99_ms=4.5, core_share=0.3)
COMMAND = replace(OURS, beside_load_cpu_s=0.7, ttft_n=0)


def result() -> Result:
    rounds: dict[str, list[Figures | None]] = {
        "reference": [REFERENCE, REFERENCE],
        "loadgen": [OURS, None],
        "loadgen-load": [COMMAND, COMMAND],
    }
    return Result(
        date="2026-11-29T12:00:00+00:00",
        machine="machine",
        server_core=0,
        client_core=1,
        versions={"reference": "uvloop 1", "loadgen": "loadgen 1", "loadgen-load": "loadgen 1"},
        whats={"reference": "limit", "loadgen": "ours", "loadgen-load": "whole"},
        missing={"aiperf": "it is not installed"},
        scenarios=[PACED_32, PACED_256],
        runs={"paced-32": dict(rounds), "paced-256": dict(rounds)},
        faults=["loadgen in paced-32, round 2: gone"],
    )


def test_goals_are_held_against_the_median() -> None:
    found = {goal.text.split(",")[0].split(" (")[0]: goal for goal in goals(result().runs)}
    assert len(goals({})) == 8
    assert all(goal.met is None for goal in goals({}))
    verdicts = [goal.met for goal in goals(result().runs)]
    # 1.15 times; 0.5 ms; 2.5 ms beyond; 0.99; 0.3; saturated not run; 0.7 s; memory not run
    assert verdicts == [True, True, False, True, True, None, True, None]
    assert found["CPU s of the whole command beside the load"].measured is not None
    text = goal_table(goals(result().runs))
    assert text.count("| yes |") == 5
    assert text.count("| **no** |") == 1
    assert text.count("| not measured |") == 2


def test_result_is_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.json"
    result().write(path)
    assert read_result(path) == result()
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="schema 1"):
        read_result(path)


def test_text_drops_nothing() -> None:
    text = result().text()
    assert "- **aiperf**: not measured, because it is not installed" in text
    assert "- failed: loadgen in paced-32, round 2: gone" in text
    assert "### paced-256" in text
    assert "### Goals" in text


def test_merged_runs() -> None:
    memory = result()
    memory.scenarios, memory.runs = [MEMORY], {"memory": {"loadgen": [replace(OURS, peak_rss_mb=120.0)]}}
    memory.versions["aiperf"] = "aiperf 1"
    both = merged([result(), memory])
    assert [one.name for one in both.scenarios] == ["paced-32", "paced-256", "memory"]
    assert list(both.runs) == ["paced-32", "paced-256", "memory"]
    assert both.missing == {}
    assert [goal.met for goal in goals(both.runs)][-1] is True
    memory.machine = "another"
    with pytest.raises(ValueError, match="two machines"):
        merged([result(), memory])


def test_page_is_rewritten_between_its_marks() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert published(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert published(published(page, "new"), "newer") == published(page, "newer")
    with pytest.raises(ValueError, match="lacks"):
        published("no marks", "new")


def test_the_documented_page_has_the_marks() -> None:
    assert "x" in published(PAGE.read_text(encoding="utf-8"), "x")


def test_memory_scenario_is_ten_million_events() -> None:
    assert MEMORY.events == 10_000_000
    assert SATURATED.ideal_s is None
    assert PACED_256.ideal_s == pytest.approx(10.24)
