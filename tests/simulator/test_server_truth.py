"""`loadgen simulate --truth`: its table, its JSON, its errors. The numbers are tested where they are made."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.commands.simulate_truth import TruthRequest, as_data, print_truth, table
from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile
from loadgen.simulator import truth as truth_room
from loadgen.simulator.launch import LaunchOptions
from loadgen.simulator.truth import Effort, LevelTruth, TrueCrossing, Truth

PROFILES = Path(__file__).resolve().parents[2] / "server_profiles"


def made(*crossings: TrueCrossing, status: Any = "found") -> Truth:
    levels = (
        LevelTruth(1, 150.7, 266.1, 1.766, 0.0021, 2.029, 1.0, 2.379, 0.644),
        LevelTruth(32, 792.7, 735.7, 0.928, 0.0011, 0.956, 31.2, None, None),
    )
    return Truth("ngram", "baseline", "rtx4090-8b-int4", "code-edit", levels, status, crossings, 1000, 2.4)


def request(**changes: Any) -> TruthRequest:
    facts: dict[str, Any] = {
        "profile": load_profile("ngram", PROFILES),
        "launch": LaunchOptions(),
        "workloads": "code-edit",
        "levels": "1,2",
        "against": "baseline",
        "as_json": False,
    }
    return TruthRequest(**{**facts, **changes})


def test_the_table_is_aligned_and_says_where_it_turns() -> None:
    lines = table(made(TrueCrossing(12, 13, 12.4, "down")))
    assert lines[0].startswith("SIMULATED truth: ngram against baseline on code-edit")
    assert len({len(line) for line in lines[1:-1]}) == 1
    assert lines[-1] == "Speculation turns down between 12 and 13 concurrent requests."
    assert lines[3].split()[-2:] == ["-", "-"]


@pytest.mark.parametrize(
    ("status", "words"), [("pays_throughout", "pays at every level"), ("never_pays", "never pays")]
)
def test_the_sentence_without_a_crossing(status: str, words: str) -> None:
    assert words in table(made(status=status))[-1]


def test_the_data_is_json() -> None:
    data = json.loads(json.dumps(as_data(made(TrueCrossing(12, 13, 12.4, "down")))))
    assert data["crossings"][0]["level_below"] == 12
    assert data["levels"][1]["acceptance_rate"] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"workloads": "nonsense"},
        {"levels": "0"},
        {"against": "nonsense"},
        {"launch": LaunchOptions(hardware="abacus")},
    ],
)
def test_unknown_names_are_usage_errors(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        print_truth(request(**changes))


@pytest.mark.parametrize("as_json", [True, False])
def test_a_short_truth_end_to_end(capsys: Any, monkeypatch: Any, as_json: bool) -> None:
    monkeypatch.setattr(truth_room, "Effort", lambda: Effort(population=120, sample=40, relative_error=0.5))
    print_truth(request(levels="1", as_json=as_json))
    shown = capsys.readouterr().out
    if as_json:
        (found,) = json.loads(shown)["truths"]
        assert found["levels"][0]["speedup"] > 1
        assert found["status"] == "pays_throughout"
    else:
        assert "Speculation pays at every level." in shown
