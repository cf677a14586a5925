"""Pictures of the dashboards: python -m tools.dashboards.pictures OUT [RUN] (needs Prometheus and Chromium).

Without a run it sweeps two simulated servers; with one it replays it into the same Prometheus.

Grafana cannot be had everywhere; this draws the same queries of the same panels, at their places, with Plotly. It shows
whether the queries, units and legends say something; Grafana's own look differs.
"""

import base64
import json
import math
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tools.dashboards.ask import GRAFANA, fill
from tools.dashboards.stage import LOADGEN, ROOT, Stage, stage

SWEEP = ("--workload", "code-edit", "--levels", "1,2,4,8,16,32", "--repeats", "3", "--window", "2")
PLOTLY = ROOT / "loadgen" / "report" / "assets" / "plotly-basic.min.js"


def main() -> int:
    """0 if all pictures are written."""
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        with stage(Path(folder), runs) as up:
            run, span = _replay(up, Path(sys.argv[2])) if len(sys.argv) > 2 else _sweep(up)
            boards = {path.stem: _filled(path, up, run, *span) for path in _boards()}
    _shoot(boards, out)
    return 0


def _sweep(up: Stage) -> tuple[str, tuple[float, float]]:
    """The run's name and its time."""
    began = time.time()
    if up.sweep(*SWEEP).wait() not in (0, 3):
        raise RuntimeError((up.runs.parent / "sweep.log").read_text(encoding="utf-8"))
    time.sleep(2)
    return max(path.name for path in up.runs.iterdir()), (began, time.time())


def _replay(up: Stage, run: Path) -> tuple[str, tuple[float, float]]:
    words = [*LOADGEN, "replay", str(run), "--to", up.prometheus]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    began, ended = (int(found) / 1000 for found in re.findall(r"(?:from|to)=(\d{13})", told))
    return run.name, (began, ended)


def _boards() -> list[Path]:
    return sorted(GRAFANA.glob("*.json"))


def _filled(path: Path, up: Stage, run: str, began: float, ended: float) -> dict[str, Any]:
    """The dashboard with its data, as the page takes it."""
    board = json.loads(path.read_text(encoding="utf-8"))
    marks = up.ask("query", query=fill(board["annotations"]["list"][-1]["expr"], run=run), time=ended)
    at = [float(row["value"][1]) for row in marks["result"]]
    panels = [_panel(panel, up, run, (began, ended), at) for panel in board["panels"]]
    return {"title": board["title"], "panels": panels}


def _panel(panel: dict[str, Any], up: Stage, run: str, span: tuple[float, float], marks: list[float]) -> dict[str, Any]:
    defaults = panel["fieldConfig"]["defaults"]
    made: dict[str, Any] = {key: panel["gridPos"][key] for key in "xywh"}
    made |= {"title": panel["title"], "type": panel["type"], "unit": defaults.get("unit")}
    made |= {"zero": defaults.get("custom", {}).get("axisSoftMin", 0) == 0}
    made |= {"max": defaults.get("max"), "decimals": defaults.get("decimals")}
    made |= {"range": [second * 1000 for second in span], "series": [], "columns": [], "rows": []}
    for target in panel["targets"]:
        expr = fill(target["expr"], run=run)
        if panel["type"] in ("stat", "timeseries"):
            found = up.ask("query_range", query=expr, start=span[0], end=span[1], step=1)["result"]
            made["series"] += _series(found, target["legendFormat"])
            made["marks"] = marks
        elif panel["type"] == "xychart":
            made["across"] = panel["fieldConfig"]["overrides"][0]["properties"][1]["value"]
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
        gaps = [(early + 1000, None) for (early, _), (late, _) in pairwise(points) if late - early > 1500]
        name = legend
        for label in re.findall(r"\{\{(\w+)\}\}", legend):
            name = name.replace(f"{{{{{label}}}}}", row["metric"].get(label, ""))
        if points:
            drawn = sorted([*points, *gaps], key=lambda point: point[0])
            made.append({"name": name, "x": [at for at, _ in drawn], "y": [value for _, value in drawn]})
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


INDEXED = """async data => {
  const image = new Image(); image.src = "data:image/png;base64," + data; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), draw = canvas.getContext("2d");
  draw.drawImage(image, 0, 0);
  const pixels = draw.getImageData(0, 0, image.width, image.height).data, counts = new Map(), nearest = new Map();
  const coarse = i => (pixels[i] >> 3 << 10) | (pixels[i + 1] >> 3 << 5) | (pixels[i + 2] >> 3);
  for (let i = 0; i < pixels.length; i += 4) {
    const key = coarse(i), seen = counts.get(key), full = bits => Math.round((bits & 31) * 255 / 31);
    if (seen) seen.n++; else counts.set(key, {n: 1, rgb: [full(key >> 10), full(key >> 5), full(key)]});
  }
  const palette = [...counts.values()].sort((a, b) => b.n - a.n).slice(0, 64).map(c => c.rgb);
  for (const [key, c] of counts) {
    const far = p => (p[0] - c.rgb[0]) ** 2 + (p[1] - c.rgb[1]) ** 2 + (p[2] - c.rgb[2]) ** 2;
    nearest.set(key, palette.reduce((best, p, i) => far(p) < far(palette[best]) ? i : best, 0));
  }
  let indices = "";
  for (let i = 0; i < pixels.length; i += 4) indices += String.fromCharCode(nearest.get(coarse(i)));
  return {width: image.width, height: image.height, palette: palette.flat(), indices: btoa(indices)};
}"""


def _with_palette(page: Page, png: bytes) -> bytes:
    """The picture in 64 colours: a third of the size. Chromium writes none, so the page maps and this encodes."""
    found = page.evaluate(INDEXED, base64.b64encode(png).decode())
    indices, width = base64.b64decode(found["indices"]), found["width"]
    rows = b"".join(b"\0" + indices[start : start + width] for start in range(0, len(indices), width))
    header = struct.pack(">IIBBBBB", width, found["height"], 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", bytes(found["palette"])), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    body = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


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
            picture.write_bytes(_with_palette(page, page.screenshot(full_page=True)))
            print(f"{picture}: {picture.stat().st_size // 1000} kB")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
