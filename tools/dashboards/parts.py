"""The pieces that all dashboards are made of: queries, panels, variables, annotations."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import common, prometheus, stat, table, timeseries, xychart
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink, QueryVariable
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

Panels = tuple[Builder[d.Panel], ...]

UID = "loadgen-prometheus"
"""The data source's fixed uid: the same in provisioning/, in every panel, target, variable and annotation."""
SOURCE = d.DataSourceRef(type_val="prometheus", uid=UID)
HEIGHT = 8
DASHBOARDS = {
    "loadgen-live": "Speculation live",
    "loadgen-break-even": "Break-even",
    "loadgen-health": "Load generator",
}


def query(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    """A query over the dashboard's time range."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).range().datasource(SOURCE)


def now(expr: str, legend: str = "", ref: str = "A", *, as_table: bool = False) -> prometheus.Dataquery:
    """A query for the end of the dashboard's time range."""
    found = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).instant().datasource(SOURCE)
    return found.format(PromQueryFormat.TABLE) if as_table else found


def over_time(
    title: str,
    text: str,
    *queries: tuple[str, str],
    unit: str = "short",
    low: float | None = 0,
    high: float | None = None,
) -> timeseries.Panel:
    """Lines over time; each query is (PromQL, legend)."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(HEIGHT)
        .span(8)
        .line_width(2)
        .fill_opacity(6)
        .show_points(c.VisibilityMode.NEVER)
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING))
    )
    for index, (expr, legend) in enumerate(queries):
        panel = panel.with_target(query(expr, legend, chr(ord("A") + index)))
    panel = panel if low is None else panel.min(low)
    return panel if high is None else panel.max(high)


def number(title: str, text: str, expr: str, legend: str, *, unit: str = "short", digits: int = 2) -> stat.Panel:
    """The last value of each series in the time range, large."""
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .decimals(digits)
        .no_value("none")
        .height(4)
        .span(4)
        .graph_mode(c.BigValueGraphMode.NONE)
        .color_mode(c.BigValueColorMode.NONE)
        .text_mode(c.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(query(expr, legend))
    )


def by_level(
    title: str,
    text: str,
    *parts: str,
    unit: str = "short",
    label: str = "",
    across: str = "requests in flight",
    lowest: float = 0,
) -> xychart.Panel:
    """Lines over concurrency (log 2): PromQL whose results carry `concurrency` and `series`, all in one query.

    One query gives one frame, which is cut into one frame per series; in each, concurrency is the first number, which
    an XY chart takes for x.
    """
    expr = "max by (concurrency, series) (\n  " + "\n  or ".join(parts) + "\n)"
    log2 = {"type": "log", "log": 2}
    axis = [
        d.DynamicConfigValue(id_val="custom.scaleDistribution", value=log2),
        d.DynamicConfigValue(id_val="custom.axisLabel", value=across),
        d.DynamicConfigValue(id_val="unit", value="short"),
    ]
    panel = (
        xychart.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(11)
        .span(12)
        .mapping(SeriesMapping.AUTO)
        .show(XYShowMode.POINTS_AND_LINES)
        .line_width(2)
        .axis_label(label)
        .legend(_legend())
        .override_by_name("concurrency", axis)
        .override_by_regexp("/( low| high|^break-even|^limit)$/", _dashed())
        .with_target(now(expr, as_table=True))
        .with_transformation(_step("convertFieldType", {"conversions": [_to_number("concurrency")]}))
        .with_transformation(_step("filterFieldsByName", {"include": {"names": ["concurrency", "series", "Value"]}}))
        .with_transformation(_step("sortBy", {"fields": {}, "sort": [{"field": "concurrency"}]}))
        .with_transformation(_step("partitionByValues", {"fields": ["series"], "keepFields": False}))
    )
    return panel.axis_soft_min(lowest)


def rows(
    title: str, text: str, expr: str, hidden: Sequence[str] = (), *, span: int = 24, height: int = 7
) -> table.Panel:
    """A table of an instant query's labels and values."""
    exclude = dict.fromkeys(["Time", "__name__", "instance", "job", *hidden], True)
    return (
        table.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .no_value("none")
        .height(height)
        .span(span)
        .with_target(now(expr, as_table=True))
        .with_transformation(_step("organize", {"excludeByName": exclude, "indexByName": {}, "renameByName": {}}))
    )


def named(expr: str, *labels: str, also: str = "") -> str:
    """The PromQL with a label `series` made of these labels' values, and of `also` after them."""
    joined = f'label_join({expr}, "series", " ", {", ".join(f"{chr(34)}{label}{chr(34)}" for label in labels)})'
    return f'label_replace({joined}, "series", "$1 {also}", "series", "(.*)")' if also else joined


def called(expr: str, name: str) -> str:
    """The PromQL with the label `series` set to a name."""
    return f'label_replace({expr}, "series", "{name}", "", "")'


def variable(name: str, label: str, metric: str, what: str, *, many: bool) -> QueryVariable:
    """A choice of the values of a label: of all, unless one at a time makes sense."""
    text = f"label_values({metric}, {what})"
    made = (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": text, "refId": f"variable-{name}", "qryType": 1})
        .refresh(d.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(d.VariableSort.ALPHABETICAL_ASC if many else d.VariableSort.ALPHABETICAL_DESC)
    )
    if not many:
        return made
    everything = d.VariableOption(text="All", value="$__all", selected=True)
    return made.multi(True).include_all(True).all_value(".*").current(everything)


def level_starts(select: str = "") -> str:
    """PromQL: when each level began, by its first profile (the others follow within seconds)."""
    started = f"loadgen_cell_started_timestamp_seconds{select}"
    return f"min by (run, workload, input_tokens, concurrency, repeat) ({started})"


class _Mark(d.AnnotationQuery):
    """An annotation at the times that a metric's values tell; the SDK has no fields for Prometheus' options."""

    text: str = ""

    def to_json(self) -> dict[str, object]:
        target = {"expr": self.expr, "refId": "Anno", "datasource": SOURCE, "range": True, "instant": False}
        return {**super().to_json(), "target": target, "titleFormat": self.text, "useValueForTime": True}


class Marks(AnnotationQuery):
    """Marks on every chart over time, at times that a metric's values tell (seconds)."""

    def __init__(self, name: str, metric: str, text: str, color: str) -> None:
        super().__init__()
        self._internal = _Mark(name, SOURCE, icon_color=color, expr=f"{metric} * 1000")
        self._internal.text = text


def dashboard(uid: str, text: str) -> Dashboard:
    """An empty dashboard with what all have, and links to the others."""
    made = (
        Dashboard(f"loadgen: {DASHBOARDS[uid]}")
        .uid(uid)
        .description(text)
        .tags(["loadgen", "vllm"])
        .timezone("browser")
        .time("now-15m", "now")
        .refresh("5s")
        .tooltip(d.DashboardCursorSync.CROSSHAIR)
    )
    for other, name in DASHBOARDS.items():
        if other != uid:
            link = DashboardLink(name).type(d.DashboardLinkType.LINK).url(f"/d/{other}").keep_time(True)
            made = made.link(link)
    return made


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(c.LegendDisplayMode.LIST)
        .placement(c.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def _dashed() -> list[d.DynamicConfigValue]:
    """What bounds something is drawn thinner than the thing itself."""
    return [
        d.DynamicConfigValue(id_val="custom.lineWidth", value=1),
        d.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [4, 6]}),
        d.DynamicConfigValue(id_val="custom.show", value="lines"),
    ]


def _step(name: str, options: dict[str, object]) -> d.DataTransformerConfig:
    return d.DataTransformerConfig(id_val=name, options=options)


def _to_number(field: str) -> dict[str, object]:
    return {"targetField": field, "destinationType": "number"}
