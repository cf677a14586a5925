"""A listener whose terminal goes away."""

import pytest

from loadgen.sweep.events import Notice, SweepEvent
from loadgen.sweep.steady import SteadyListener, steady


@pytest.mark.parametrize("fault", [BrokenPipeError(), OSError(5, "Input/output error"), SystemExit(1)])
def test_a_lost_terminal_is_noted_once_and_breaks_nothing(fault: BaseException) -> None:
    told: list[str] = []

    def shown(event: SweepEvent) -> None:
        told.append("event")
        raise fault

    listener = SteadyListener(shown, lambda: told.append("silenced"))
    listener.when_lost = lambda: told.append("stop")
    for _ in range(3):
        listener(Notice("something"))

    assert told == ["event", "silenced", "stop"]
    assert listener.lost


def test_a_fault_of_the_display_itself_is_not_hidden() -> None:
    def shown(event: SweepEvent) -> None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        steady(shown)(Notice("something"))


def test_a_steady_listener_stays_the_same() -> None:
    listener = SteadyListener(lambda event: None)
    assert steady(listener) is listener
