from pathlib import Path

from loadgen.store.codec import builtins
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, Condition
from loadgen.sweep.estimate import TimeLeft
from loadgen.sweep.events import Notice, SweepEvent
from loadgen.sweep.plan import CellShape
from loadgen.sweep.refine import EVENT, Refiner

KEY = CellKey("ngram", Condition("chat", 60, 0.0), 11, 0)


def refiner(path: Path, looks: int = 5) -> tuple[Refiner, list[SweepEvent]]:
    heard: list[SweepEvent] = []
    return Refiner(RunFolder(path), heard.append, 0.1, looks), heard


def test_a_resumed_run_first_measures_what_its_last_look_asked_for(tmp_path: Path) -> None:
    one, _ = refiner(tmp_path)
    one.folder.append_event(EVENT, "look 1", cells=[builtins(KEY)])
    assert one.asked() == (KEY,)
    assert one.more(TimeLeft(CellShape())) == (KEY,)
    one.folder.close()


def test_no_look_beyond_those_that_the_error_rate_counts_on(tmp_path: Path) -> None:
    one, heard = refiner(tmp_path, looks=2)
    one.folder.append_event(EVENT, "look 1", cells=[])
    assert one.more(TimeLeft(CellShape())) == ()
    assert isinstance(heard[-1], Notice)
    one.folder.close()
