"""One live display, lines without a terminal, JSON lines for scripts."""

import io
import json
from collections.abc import Iterator

import pytest
from rich.console import Console

from loadgen.engines.base import EngineEvent
from loadgen.load.shape import LoadProgress
from loadgen.report.lines import JsonListener, LineListener
from loadgen.report.live import LiveListener
from loadgen.report.progress import Progress
from loadgen.store.model import CellResult
from loadgen.sweep.events import (
    CellFailed,
    CellFinished,
    CellProgress,
    CellStarted,
    Notice,
    ServerProgress,
    SweepEvent,
    SweepStarted,
)


def story(cells: tuple[CellResult, ...]) -> Iterator[SweepEvent]:
    yield SweepStarted("runs/x", "simulator", "no GPU here", True, len(cells), 0, 300.0)
    for phase in ("starting", "port", "port", "ready"):
        yield ServerProgress(EngineEvent("ngram", phase, 1.0))
    for index, cell in enumerate(cells):
        yield CellStarted(cell.key, index, len(cells))
        for tick in range(30):
            load = LoadProgress(tick * 0.25, cell.key.level, tick, 0, 123.4, "window")
            yield CellProgress(cell.key, load)
        yield CellFinished(cell, index, len(cells), 5.0 * index, 61.0)
    yield CellFailed(cells[0].key, "server \x1b[31mdied")
    yield Notice("Host is [bold]busy[/bold].")
    yield ServerProgress(EngineEvent("ngram", "stopped", 2.0))


def test_speedups_pair_repeats(cells: tuple[CellResult, ...]) -> None:
    progress = Progress()
    for event in story(cells[:2]):
        progress.take(event)
    ((where, row),) = progress.speedups().items()
    assert where[1] == "ngram"
    assert row[1] == pytest.approx(cells[1].output_tokens_per_s / cells[0].output_tokens_per_s)
    assert (progress.done, progress.failed, progress.servers) == (3, 1, {})


def test_without_a_terminal_there_are_lines(cells: tuple[CellResult, ...]) -> None:
    out = io.StringIO()
    with LiveListener(Console(file=out, width=80)) as listener:
        for event in story(cells[:4]):
            listener(event)
    lines = out.getvalue().splitlines()
    assert "\x1b" not in out.getvalue()
    assert lines[0] == "SIMULATED: engine simulator (no GPU here); 4 cells, about 5 min 00 s; into runs/x"
    assert sum(line.startswith("server ngram: port") for line in lines) == 1
    assert sum("window" in line for line in lines) == 4  # 7.25 s a cell: one line each
    assert any(line.startswith("[2/4] ngram, code-edit, 1 in flight, repeat 1: ") for line in lines)
    assert "Host is [bold]busy[/bold]." in lines
    assert any("server [31mdied" in line for line in lines)


def test_a_terminal_gets_one_display_that_is_gone_at_the_end(cells: tuple[CellResult, ...]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True, color_system=None)
    with LiveListener(console) as listener:
        seen = ""
        for event in story(cells):
            listener(event)
            if isinstance(event, CellProgress) and event.load.finished == 9:
                with console.capture() as capture:
                    console.print(listener.picture())
                seen = capture.get()
    for part in ("server ngram  ready", "123 tokens/s", "32 in flight", "cells", "left", "speed-up so far", "1.43×"):
        assert part in seen
    assert out.getvalue().count("\x1b[?25l") == 1  # hidden once: one display
    assert "\x1b[?25h" in out.getvalue()


def test_an_exception_restores_the_terminal(cells: tuple[CellResult, ...]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True)

    def broken() -> None:
        with LiveListener(console) as listener:
            listener(CellStarted(cells[0].key, 0, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def test_json_lines_are_json(cells: tuple[CellResult, ...]) -> None:
    out = io.StringIO()
    with JsonListener(out) as listener:
        for event in story(cells[:2]):
            listener(event)
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert events[0]["event"] == "sweep_started"
    assert {e["event"] for e in events} >= {"server", "cell_started", "cell_progress", "cell_finished", "cell_failed"}
    finished = next(e for e in events if e["event"] == "cell_finished")
    assert finished["result"]["key"]["profile"] == "baseline"
    assert sum(e["event"] == "cell_progress" for e in events) == 14


def test_json_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    JsonListener()(Notice("hello"))
    captured = capsys.readouterr()
    assert json.loads(captured.err) == {"event": "notice", "text": "hello"}
    assert captured.out == ""


def test_a_listener_draws_nothing_for_an_idle_sweep() -> None:
    out = io.StringIO()
    with LineListener(Console(file=out)):
        pass
    assert out.getvalue() == ""


def test_levels_that_stood_before_a_resume_stay_in_the_speedups(cells: tuple[CellResult, ...]) -> None:
    stood = tuple((cell.key, cell.output_tokens_per_s) for cell in cells[:2])
    progress = Progress()
    progress.take(SweepStarted("runs/x", "simulator", "no GPU here", True, 4, 2, 300.0, stood))
    ((_, row),) = progress.speedups().items()
    assert row[cells[0].key.level] == pytest.approx(stood[1][1] / stood[0][1])
    assert progress.done == 2


def test_json_lines_do_not_repeat_what_stands_in_the_folder(cells: tuple[CellResult, ...]) -> None:
    out = io.StringIO()
    stood = tuple((cell.key, cell.output_tokens_per_s) for cell in cells[:2])
    JsonListener(out)(SweepStarted("runs/x", "simulator", "no GPU here", True, 4, 2, 300.0, stood))
    assert "resumed_rates" not in json.loads(out.getvalue())
