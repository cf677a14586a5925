"""A listener that outlives its terminal."""

from collections.abc import Callable

from loadgen.sweep.events import Listener, SweepEvent


class SteadyListener:
    """Never raises: once what it writes to is gone (a closed pipe or terminal), it says so once and is silent.

    Events come from the middle of starting and stopping servers, where an error would break more than the display.
    """

    def __init__(self, shown: Listener, on_lost: Callable[[], None] = lambda: None) -> None:
        self.lost = False
        self.when_lost: Callable[[], None] = lambda: None
        """Called once when it happens; whoever measures sets it to what stops the run."""
        self._shown = shown
        self._on_lost = on_lost

    def __call__(self, event: SweepEvent) -> None:
        """Shows the event, while there is somewhere to show it."""
        if self.lost:
            return
        try:
            self._shown(event)
        except (OSError, SystemExit):  # rich's console makes SystemExit of a broken pipe, and that ends an event loop
            self.lost = True
            self._on_lost()
            self.when_lost()


def steady(listener: Listener) -> SteadyListener:
    """The listener itself if it is steady, else one that is."""
    return listener if isinstance(listener, SteadyListener) else SteadyListener(listener)
