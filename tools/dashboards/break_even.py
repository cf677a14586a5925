"""Dashboard 2: profiles side by side over concurrency, from loadgen's own exporter."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from tools.dashboards.parts import (
    Marks,
    Panels,
    by_level,
    called,
    dashboard,
    level_starts,
    named,
    number,
    over_time,
    rows,
    variable,
)

HERE = '{run="$run", workload=~"$workload"}'
TOKENS = '{run="$run", workload=~"$workload", measure="output_tokens_per_s"}'
WHO = "{{profile}}, {{workload}}"
FOUND = "{{profile}}, {{condition}}"


def curve(metric: str, also: str = "") -> str:
    """PromQL: the metric over concurrency, one series per profile and workload."""
    return named(f"{metric}{HERE}", "profile", "condition", also=also)


def one(metric: str, name: str) -> str:
    """PromQL: a line at 1 over the levels that the metric has."""
    return called(f"(count by (concurrency) ({metric}{HERE}) * 0 + 1)", name)


def turns(metric: str, also: str) -> str:
    """PromQL: points on the line at 1, at the concurrencies that the metric's values tell."""
    at = f'count_values by (profile, condition) ("concurrency", round({metric}{TOKENS}, 0.1)) * 0 + 1'
    return named(f"({at})", "profile", "condition", also=also)


def quantile(q: float, histogram: str) -> str:
    """PromQL: a quantile per profile and workload over the last minutes."""
    inside = f"sum by (le, profile, workload) (rate({histogram}_bucket{HERE}[$__rate_interval]))"
    return f"histogram_quantile({q}, {inside})"


EDGES = called('(count_values("concurrency", loadgen_schedule_edge{run="$run"}) * 0 + 1)', "schedule edge (batch)")


def build() -> Dashboard:
    """The dashboard."""
    made = dashboard("loadgen-break-even", "Where speculation stops paying off, and what to set: one run of loadgen.")
    made = (
        made.with_variable(variable("run", "Run", "loadgen_run_info", "run", many=False))
        .with_variable(
            variable("workload", "Workload", 'loadgen_output_tokens_per_second{run="$run"}', "workload", many=True)
        )
        .annotation(Marks("Runs", "loadgen_run_started_timestamp_seconds", "run {{run}}", "purple"))
        .annotation(
            Marks(
                "Levels",
                level_starts('{run="$run"}'),
                "{{workload}} at {{concurrency}}",
                "orange",
            )
        )
    )
    for panel in (*_answer(), *_curves(), *_progress()):
        made = made.with_panel(panel)
    return made


def _answer() -> Panels:
    return (
        number(
            "Break-even",
            "Requests in flight up to which speculation pays, by output tokens/s; none where there is no turn.",
            f"loadgen_break_even_concurrency{TOKENS}",
            FOUND,
            digits=0,
        ),
        number("Best speed-up", "Of all levels.", f"max by (profile, condition) (loadgen_speedup{HERE})", FOUND),
        number("Worst speed-up", "Of all levels.", f"min by (profile, condition) (loadgen_speedup{HERE})", FOUND),
        rows(
            "Verdict",
            "By output tokens/s and by TPOT.",
            f"loadgen_break_even_status{HERE}",
            ("run", "Value", "workload", "input_tokens", "temperature"),
            span=6,
            height=4,
        ),
        rows(
            "Run",
            "What was measured.",
            'loadgen_run_info{run="$run"}',
            ("Value", "run", "against", "profiles"),
            span=6,
            height=4,
        ),
    )


def _curves() -> Panels:
    speedup = by_level(
        "Speed-up over concurrency",
        "Output tokens/s, profile / baseline, with its 95 % band (low, high). Above 1 speculation pays. Points on the "
        "line at 1: the break-even with its interval, and the edges of the advised schedule (a schedule counts the "
        "batch, which lies a little below the requests in flight).",
        curve("loadgen_speedup"),
        curve("loadgen_speedup_low", "low"),
        curve("loadgen_speedup_high", "high"),
        one("loadgen_speedup", "break-even"),
        turns("loadgen_break_even_concurrency", "turn"),
        turns("loadgen_break_even_concurrency_low", "turn"),
        turns("loadgen_break_even_concurrency_high", "turn"),
        EDGES,
        label="speed-up",
        lowest=0.8,
    ).span(24)
    return (
        speedup,
        by_level(
            "Throughput",
            "Output tokens/s of all requests together.",
            curve("loadgen_output_tokens_per_second"),
            label="tokens/s",
        ),
        by_level("Time per output token", "Median, as a client sees it.", curve("loadgen_tpot_p50_seconds"), unit="s"),
        by_level("Time to first token", "Median, as a client sees it.", curve("loadgen_ttft_p50_seconds"), unit="s"),
        by_level(
            "Why it turns",
            "Tokens per step against what a step costs (step time, profile / baseline): speculation pays while the "
            "first is above the second.",
            curve("loadgen_tokens_per_step", "tokens per step"),
            curve("loadgen_step_time_ratio", "step time"),
        ),
        by_level("Acceptance", "Accepted / drafted tokens.", curve("loadgen_acceptance_ratio"), unit="percentunit"),
        by_level(
            "What to set",
            "Advised speculative tokens per request, by batch size (num_speculative_tokens_per_batch_size).",
            called('loadgen_schedule_tokens{run="$run"}', "speculative tokens"),
            across="batch: requests per engine step",
        ),
    )


def _progress() -> Panels:
    return (
        over_time(
            "Level",
            "Requests in flight of the cell that is measured.",
            ('loadgen_current_concurrency{run="$run"}', WHO),
        ),
        over_time(
            "Cells",
            "Measured and planned.",
            ('loadgen_run_cells_measured{run="$run"}', "measured"),
            ('loadgen_run_cells_planned{run="$run"}', "planned"),
            ('loadgen_run_cells_failed{run="$run"}', "failed"),
        ),
        over_time(
            "Time per output token, live",
            "p50 of the requests that end, as the client sees it (buckets a quarter apart from 0.2 ms).",
            (quantile(0.5, "loadgen_tpot_seconds"), WHO),
            unit="s",
        ),
    )
