"""Pictures of the dashboards from live data: python -m tools.dashboards.pictures OUT (needs Prometheus and Chromium).

Grafana cannot be had everywhere; this draws the same queries of the same panels, at their places, with Plotly. It shows
whether the queries, units and legends say something; Grafana's own look differs.
"""

import json
import math
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tools.dashboards.stage import ROOT, Stage, fill, stage

SWEEP = ("--workload", "code-edit", "--levels", "1,2,4,8,16,32", "--repeats", "3", "--window", "2")
PLOTLY = ROOT / "loadgen" / "report" / "assets" / "plotly-basic.min.js"


def main() -> int:
    """0 if all pictures are written."""
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        with stage(Path(folder), runs) as up:
            began = time.time()
            code = up.sweep(*SWEEP).wait()
            time.sleep(2)
            print(f"the sweep ended with {code}")
            run = max(path.name for path in runs.iterdir())
            boards = {path.stem: _filled(path, up, run, began, time.time()) for path in _boards()}
    _shoot(boards, out)
    return 0


def _boards() -> list[Path]:
    return sorted((ROOT / "dashboards" / "grafana").glob("*.json"))


def _filled(path: Path, up: Stage, run: str, began: float, ended: float) -> dict[str, Any]:
    """The dashboard with its data, as the page takes it."""
    board = json.loads(path.read_text(encoding="utf-8"))
    marks = up.ask("query", query=f'loadgen_cell_started_timestamp_seconds{{run="{run}"}} * 1000', time=ended)
    at = [float(row["value"][1]) for row in marks["result"]]
    panels = [_panel(panel, up, run, (began, ended), at) for panel in board["panels"]]
    return {"title": board["title"], "panels": panels}


def _panel(panel: dict[str, Any], up: Stage, run: str, span: tuple[float, float], marks: list[float]) -> dict[str, Any]:
    defaults = panel["fieldConfig"]["defaults"]
    made: dict[str, Any] = {key: panel["gridPos"][key] for key in "xywh"}
    made |= {"title": panel["title"], "type": panel["type"], "unit": defaults.get("unit")}
    made |= {"max": defaults.get("max"), "decimals": defaults.get("decimals")}
    made |= {"range": [second * 1000 for second in span], "series": [], "columns": [], "rows": []}
    for target in panel["targets"]:
        expr = fill(target["expr"], run=run)
        if panel["type"] == "stat":
            # The servers are idle by now; the middle of the run says more.
            at = (span[0] + span[1]) / 2 if "vllm:" in expr else span[1]
            made["series"] += _series(up.ask("query", query=expr, time=at)["result"], target["legendFormat"])
        elif panel["type"] == "timeseries":
            found = up.ask("query_range", query=expr, start=span[0], end=span[1], step=1)["result"]
            made["series"] += _series(found, target["legendFormat"])
            made["marks"] = marks
        elif panel["type"] == "xychart":
            made["series"] += _curves(up.ask("query", query=expr, time=span[1])["result"])
        else:
            hidden = panel["transformations"][0]["options"]["excludeByName"]
            rows = [row["metric"] for row in up.ask("query", query=expr, time=span[1])["result"]]
            made["columns"] = [name for name in sorted({key for row in rows for key in row}) if name not in hidden]
            made["rows"] = [[row.get(name, "") for name in made["columns"]] for row in rows]
    return made


def _series(result: list[dict[str, Any]], legend: str) -> list[dict[str, Any]]:
    made = []
    for row in result:
        points = [(float(at) * 1000, float(value)) for at, value in row.get("values") or [row["value"]]]
        points = [(at, value) for at, value in points if math.isfinite(value)]
        name = legend
        for label in re.findall(r"\{\{(\w+)\}\}", legend):
            name = name.replace(f"{{{{{label}}}}}", row["metric"].get(label, ""))
        if points:
            made.append({"name": name, "x": [at for at, _ in points], "y": [value for _, value in points]})
    return made


def _curves(result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name: dict[str, list[tuple[float, float]]] = {}
    for row in result:
        point = (float(row["metric"]["concurrency"]), float(row["value"][1]))
        by_name.setdefault(row["metric"]["series"], []).append(point)
    names = sorted(by_name)
    owners = {name: re.sub(r" (low|high|turn)$", "", name) for name in names}
    return [
        {
            "name": name,
            "x": [x for x, _ in sorted(by_name[name])],
            "y": [y for _, y in sorted(by_name[name])],
            "thin": name.endswith((" low", " high")) or name in ("break-even", "limit"),
            "colour": sorted(set(owners.values())).index(owners[name]),
        }
        for name in names
    ]


def _shoot(boards: dict[str, dict[str, Any]], out: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    page_text = (Path(__file__).with_name("picture.html")).read_text(encoding="utf-8")
    page_text = page_text.replace("/*PLOTLY*/", PLOTLY.read_text(encoding="utf-8"))
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        for name, board in boards.items():
            data = json.dumps(board).replace("<", "\\u003c")
            path = Path(folder) / f"{name}.html"
            path.write_text(page_text.replace("/*DATA*/null", data), encoding="utf-8")
            page.goto(path.as_uri())
            page.wait_for_selector("body[data-drawn]")
            picture = out / f"dashboards-{name}.png"
            page.screenshot(path=picture, full_page=True)
            print(f"{picture}: {picture.stat().st_size // 1000} kB")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
