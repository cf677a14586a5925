"""What makes real servers differ from the cost model: each part seeded, each part can be off."""

import math
from dataclasses import dataclass

from loadgen.simulator.stream import key_of, uniform, uniforms


@dataclass(frozen=True)
class Noise:
    """How much of which noise; all zero is none."""

    jitter: float = 0.0
    """Relative standard deviation of each step."""
    start_effect: float = 0.0
    """Relative standard deviation of a factor that one server start keeps."""
    slow_share: float = 0.0
    """Share of time spent in slow phases."""
    slow_factor: float = 1.3
    """Step time in a slow phase, relative."""
    slow_phase_s: float = 3.0
    per_prompt_acceptance: bool = True
    """Model drafts: prompts differ in their acceptance rate."""
    first_request: bool = False
    """The first request, and the first drafts, compile kernels."""
    flip_share: float = 0.0
    """Share of near ties at which another batch shape takes the second token (vllm#41758)."""
    seed: int = 0
    """Another seed is another server start."""


QUIET = Noise()
"""None: what `--truth` uses."""
MILD = Noise(jitter=0.015, start_effect=0.01, first_request=True)
"""The command line's default."""


class NoiseSource:
    """Factors for one server start."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        self._key = key_of(noise.seed, "noise")
        self.start_factor = math.exp(noise.start_effect * _normal(key_of(self._key, "start")))
        self._step = 0
        self._quiet = noise.jitter == 0 and noise.slow_share == 0

    def factor(self, now_s: float) -> float:
        """By what the next step's time is multiplied."""
        if self._quiet:
            return self.start_factor
        self._step += 1
        factor = self.start_factor
        if self.noise.jitter:
            factor *= max(0.2, 1.0 + self.noise.jitter * _normal(key_of(self._key, self._step)))
        if self.noise.slow_share:
            # Time is cut into phases of one length; each is slow by its own draw, so that it is known ahead.
            phase = int(now_s / self.noise.slow_phase_s)
            if uniform(key_of(self._key, "phase", phase)) < self.noise.slow_share:
                factor *= self.noise.slow_factor
        return factor


def _normal(key: int) -> float:
    """A nearly standard normal number: the sum of twelve uniforms less six."""
    return float(uniforms(key, 12).sum()) - 6.0
