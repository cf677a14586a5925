"""Dashboard 3: whether the load generator itself kept up, so that its figures may be believed."""

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Panel

from tools.dashboards.break_even import HERE, WHO, quantile
from tools.dashboards.parts import (
    Marks,
    Panels,
    by_level,
    called,
    dashboard,
    level_starts,
    named,
    over_time,
    rows,
    variable,
)


def curve(metric: str, also: str = "") -> str:
    """PromQL: the metric over concurrency, one series per profile and workload."""
    return named(f"{metric}{HERE}", "profile", "workload", also=also)


def limit(value: float) -> str:
    """PromQL: a line at the limit above which a cell is void."""
    return called(f"(count by (concurrency) (loadgen_client_cpu_cores{HERE}) * 0 + {value})", "limit")


def build() -> Dashboard:
    """The dashboard."""
    made = dashboard("loadgen-health", "Did the client keep up? A client that lags measures itself, not the server.")
    made = (
        made.with_variable(variable("run", "Run", "loadgen_run_info", "run", many=False))
        .with_variable(variable("workload", "Workload", 'loadgen_client_in_flight{run="$run"}', "workload", many=True))
        .annotation(
            Marks(
                "Levels",
                level_starts('{run="$run"}'),
                "{{workload}} at {{concurrency}}",
                "orange",
            )
        )
    )
    for panel in (*_over_time(), *_by_level(), _checks()):
        made = made.with_panel(panel)
    return made


def _over_time() -> Panels:
    requests = f"sum by (outcome) (rate(loadgen_requests_total{HERE}[$__rate_interval]))"
    tokens = f"sum by (profile, workload) (rate(loadgen_output_tokens_total{HERE}[$__rate_interval]))"
    return (
        over_time(
            "Requests ended", "Per second, by outcome; warm-up included.", (requests, "{{outcome}}"), unit="reqps"
        ),
        over_time("Output tokens/s", "As the client received them.", (tokens, WHO)),
        over_time(
            "Time to first token, live",
            "p50 and p99 of the requests that end, as the client sees it.",
            (quantile(0.5, "loadgen_ttft_seconds"), f"{WHO} p50"),
            (quantile(0.99, "loadgen_ttft_seconds"), f"{WHO} p99"),
            unit="s",
        ),
        over_time(
            "End to end, live", "p50 of the requests that end.", (quantile(0.5, "loadgen_e2e_seconds"), WHO), unit="s"
        ),
        over_time(
            "Scrape time",
            "How long each server takes to answer Prometheus.",
            ("scrape_duration_seconds", "{{job}} {{instance}}"),
            unit="s",
        ),
        over_time("Targets up", "1: Prometheus reaches it.", ("up", "{{job}} {{instance}}"), high=1),
    )


def _by_level() -> Panels:
    return (
        by_level(
            "Event-loop lag",
            "p99, worst cell of a level. Above 10 ms stamps are blurred and the cell is void.",
            curve("loadgen_client_loop_lag_p99_seconds"),
            limit(0.01),
            unit="s",
        ),
        by_level(
            "Client CPU",
            "Cores in use, worst cell of a level. One process has one.",
            curve("loadgen_client_cpu_cores"),
            limit(0.9),
        ),
        by_level(
            "Requests in flight",
            "Lowest cell of a level; a level that was not reached is void.",
            curve("loadgen_client_in_flight"),
        ),
        by_level(
            "Coalesced and lockstep",
            "Share of token events that came in one read with the one before; and how far all requests end together.",
            curve("loadgen_client_coalesced_ratio", "coalesced"),
            curve("loadgen_client_lockstep", "lockstep"),
            unit="percentunit",
        ),
        by_level(
            "Stolen CPU",
            "Time that the hypervisor gave to others, worst cell.",
            curve("loadgen_stolen_cpu_ratio"),
            unit="percentunit",
        ),
    )


def _checks() -> Builder[Panel]:
    return rows(
        "Checks that fire",
        "voids = true keeps the level's cells out of verdicts; the report tells cause and cure.",
        f"loadgen_check{HERE}",
        ("run", "Value", "workload", "input_tokens", "temperature"),
        span=12,
        height=11,
    )
