"""The loads that are measured."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    """A closed loop of streams with one token an event. A request lasts `max_tokens` times the pace: its first event
    comes one pace after the request, half a pace earlier or later if the streams are spread.
    """

    name: str
    concurrency: int
    requests: int
    max_tokens: int
    pace_ms: float | None
    """Between events; None sends as fast as the sockets take."""
    what: str
    spread: bool = True
    """Streams that began together do not beat together: the client wakes up for nearly every event, as it does for
    several servers or a server under mixed load. In lockstep one wake-up serves all streams.
    """

    @property
    def events(self) -> int:
        """Events with tokens in the whole load."""
        return self.requests * self.max_tokens

    @property
    def ideal_s(self) -> float | None:
        """From the first request to the last event if the client lost no time; None without a pace."""
        if self.pace_ms is None:
            return None
        return math.ceil(self.requests / self.concurrency) * self.max_tokens * self.pace_ms / 1e3

    @property
    def short(self) -> "Scenario":
        """The same with one request per stream and an eighth of the tokens: what a whole command costs beside the
        load is what remains of this one when its events are taken off.
        """
        tokens = max(2, self.max_tokens // 8)
        return replace(self, name=f"{self.name}-short", requests=self.concurrency, max_tokens=tokens)


PACED_32 = Scenario("paced-32", 32, 256, 128, 10.0, "32 streams, an event each 10 ms: 3,200 events/s")
PACED_256 = Scenario("paced-256", 256, 1024, 128, 20.0, "256 streams, an event each 20 ms: 12,800 events/s")
LOCKSTEP_32 = Scenario("lockstep-32", 32, 256, 128, 10.0, "32 streams in lockstep, an event each 10 ms", spread=False)
SATURATED = Scenario("saturated", 32, 96, 1024, None, "32 streams, as fast as the sockets take")
QUICK = Scenario("quick", 4, 12, 16, 2.0, "a smoke run: 4 streams, an event each 2 ms")
MEMORY = Scenario("memory", 32, 2500, 4000, None, "10 million events, as fast as the sockets take")

FULL = (PACED_32, PACED_256, SATURATED)
BY_NAME = {one.name: one for one in (*FULL, LOCKSTEP_32, QUICK, MEMORY)}
