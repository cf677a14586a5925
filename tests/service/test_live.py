"""What a watcher is told, from files that grow."""

import json
from pathlib import Path

from loadgen.service.live import Live, Tail

KEY = {
    "profile": "ngram",
    "condition": {"workload": "chat", "input_tokens": 60, "temperature": 0.0},
    "level": 4,
    "repeat": 1,
    "session": 0,
}
CELL = {"key": KEY, "output_tokens_per_s": 900.5, "ttft_s": {"p50": 0.02}, "tpot_s": {"p50": None}}


def tell(folder: Path, **fact: object) -> None:
    with (folder / "progress.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


def test_lines_are_read_once_and_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    tail = Tail(path)
    assert list(tail.facts()) == []
    path.write_text('{"a": 1}\nno json\n[1]\n{"a": 2', encoding="utf-8")
    assert list(tail.facts()) == [{"a": 1}]
    with path.open("a", encoding="utf-8") as file:
        file.write("}\n")
    assert list(tail.facts()) == [{"a": 2}]
    assert list(tail.facts()) == []


def test_a_cell_comes_once_as_a_point(tmp_path: Path) -> None:
    live = Live(tmp_path)
    (tmp_path / "cells.jsonl").write_text(json.dumps(CELL) + "\n" + '{"key": {}}\n', encoding="utf-8")
    (point,) = live.poll()
    assert (point.profile, point.level, point.repeat) == ("ngram", 4, 1)
    assert (point.tokens_per_s, point.ttft_p50_s, point.tpot_p50_s) == (900.5, 0.02, None)
    assert live.poll() == []
    assert live.cells == 1


def test_the_running_cell_follows_the_events(tmp_path: Path) -> None:
    live = Live(tmp_path)
    tell(tmp_path, event="sweep_started", estimate_s=30)
    tell(tmp_path, event="server", profile="ngram", phase="ready")
    tell(tmp_path, event="cell_started", key=KEY, total=24)
    live.poll()
    assert live.remaining_s == 30
    assert live.servers == {"ngram": "ready"}
    assert live.planned == 24
    assert live.running is not None
    assert live.running.phase == "warm-up"
    load = {"phase": "window", "elapsed_s": 2.0, "tokens_per_s": 800.0, "in_flight": 4}
    tell(tmp_path, event="cell_progress", key=KEY, load=load)
    live.poll()
    assert (live.running.phase, live.running.in_flight, live.running.tokens_per_s) == ("window", 4, 800.0)
    tell(tmp_path, event="cell_finished", remaining_s=12.5)
    tell(tmp_path, event="cell_failed", reason="the server\x1b[31m died")
    tell(tmp_path, event="cell_failed", reason="the server\x1b[31m died")
    live.poll()
    assert live.running is None
    assert live.remaining_s == 12.5
    assert live.notices == ["A cell failed: the server[31m died"]
