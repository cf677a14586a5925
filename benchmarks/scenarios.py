"""The loads that are measured."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """A closed loop of streams with one token an event. A request lasts `max_tokens` times the pace: its first event
    comes one pace after the request.
    """

    name: str
    concurrency: int
    requests: int
    max_tokens: int
    pace_ms: float | None
    """Between events; None sends as fast as the sockets take."""
    what: str

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
        return Scenario(
            f"{self.name}-short", self.concurrency, self.concurrency, max(2, self.max_tokens // 8), self.pace_ms, ""
        )


PACED_32 = Scenario("paced-32", 32, 256, 128, 10.0, "32 streams, an event each 10 ms: 3,200 events/s")
PACED_256 = Scenario("paced-256", 256, 1024, 128, 20.0, "256 streams, an event each 20 ms: 12,800 events/s")
SATURATED = Scenario("saturated", 32, 96, 1024, None, "32 streams, as fast as the sockets take")
QUICK = Scenario("quick", 4, 12, 16, 2.0, "a smoke run: 4 streams, an event each 2 ms")
MEMORY = Scenario("memory", 32, 2500, 4000, None, "10 million events, as fast as the sockets take")

FULL = (PACED_32, PACED_256, SATURATED)
BY_NAME = {one.name: one for one in (*FULL, QUICK, MEMORY)}
