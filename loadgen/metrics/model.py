"""Server-side figures as plain facts."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class HistogramDelta:
    """Observations of one histogram over a window, summed over engines. Bounds ascend and end with +inf."""

    count: float
    sum: float
    buckets: tuple[tuple[float, float], ...] = ()
    """(upper bound, cumulative count)."""

    @property
    def mean(self) -> float | None:
        """Sum / count; None without observations."""
        return self.sum / self.count if self.count > 0 else None


@dataclass(frozen=True)
class CounterDelta:
    """What a server's counters did between two scrapes. None = the server has no such metric: never 0."""

    duration_s: float
    generation_tokens: float | None = None
    prompt_tokens: float | None = None
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_per_position: tuple[float, ...] = ()
    preemptions: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None
    requests_finished: dict[str, float] = field(default_factory=dict)
    inter_token_latency: HistogramDelta | None = None
    iteration_tokens: HistogramDelta | None = None
    time_to_first_token: HistogramDelta | None = None
    time_per_output_token: HistogramDelta | None = None
    """Per finished request: `request_time_per_output_token_seconds`."""
    e2e_latency: HistogramDelta | None = None
    queue_time: HistogramDelta | None = None
    process_cpu_s: float | None = None
    """CPU seconds of the API server process."""
    reset_detected: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted tokens; None if nothing was drafted."""
        return _ratio(self.accepted_tokens, self.draft_tokens)

    @property
    def mean_acceptance_length(self) -> float | None:
        """1 + accepted / drafts: tokens per *drafted* step, the bonus token included; None without drafts."""
        per_draft = _ratio(self.accepted_tokens, self.drafts)
        return None if per_draft is None else 1.0 + per_draft

    @property
    def acceptance_per_position(self) -> tuple[float, ...]:
        """Share of drafts whose token at position 0, 1, … was accepted; empty without drafts."""
        if not self.drafts:
            return ()
        return tuple(value / self.drafts for value in self.accepted_per_position)

    @property
    def request_steps(self) -> float | None:
        """Decode request-steps: one inter-token latency is observed per output event that is not a request's first."""
        return self.inter_token_latency.count if self.inter_token_latency else None

    @property
    def tokens_per_step(self) -> float | None:
        """(generated tokens − first tokens) / decode request-steps: what a speed-up needs, undrafted steps included."""
        steps = self.request_steps
        if not steps or self.generation_tokens is None:
            return None
        first_tokens = self.time_to_first_token.count if self.time_to_first_token else 0.0
        return (self.generation_tokens - first_tokens) / steps

    @property
    def draft_coverage(self) -> float | None:
        """Share of decode request-steps that had a draft."""
        return _ratio(self.drafts, self.request_steps)

    @property
    def decode_batch(self) -> float | None:
        """Δ inter_token_latency count / Δ iteration_tokens count: requests decoded per engine step."""
        return _ratio(self.request_steps, self.iteration_tokens.count if self.iteration_tokens else None)

    @property
    def steps_per_s(self) -> float | None:
        """Engine steps per second."""
        return _ratio(self.iteration_tokens.count if self.iteration_tokens else None, self.duration_s)

    @property
    def prefix_cache_hit_rate(self) -> float | None:
        """Hit tokens / queried tokens; None without queries."""
        return _ratio(self.prefix_cache_hits, self.prefix_cache_queries)


@dataclass(frozen=True)
class GaugeSample:
    """One look at the gauges (summed over engines, except KV use: the largest)."""

    at_s: float
    running: float | None
    waiting: float | None
    kv_cache_usage: float | None
    scrape_s: float
    """How long `/metrics` took to answer."""


@dataclass(frozen=True)
class GaugeSummary:
    """Gauges over a window."""

    n: int
    running_mean: float | None = None
    running_max: float | None = None
    waiting_mean: float | None = None
    waiting_max: float | None = None
    kv_cache_usage_max: float | None = None
    scrape_p50_s: float | None = None
    scrape_max_s: float | None = None


def _ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole; None if either is missing or whole is not above 0."""
    if part is None or whole is None or whole <= 0:
        return None
    return part / whole
