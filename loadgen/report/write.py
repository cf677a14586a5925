"""Writes the reports of one run into its folder."""

from collections.abc import Callable, Sequence
from pathlib import Path

from loadgen.analysis.model import Findings
from loadgen.report.cells_csv import cells_csv
from loadgen.report.detail import read_detail
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.summary import dumps, summary
from loadgen.report.svg import speedup_svg
from loadgen.report.view import edges_in
from loadgen.store.folder import write_whole
from loadgen.store.model import CellResult, Manifest, ServerFacts


def write_reports(
    folder: Path,
    findings: Findings,
    manifest: Manifest,
    cells: Sequence[CellResult],
    servers: Sequence[ServerFacts],
) -> dict[str, Path]:
    """File name → path of summary.json, cells.csv, report.md with its SVG charts, and report.html, each whole.

    The figures come first, so that a fault in a page leaves them. Raises UsageError if the folder cannot be written.
    """
    charts = {
        i: svg for i, c in enumerate(findings.conditions) if (svg := speedup_svg(c, edges_in(findings, c))) is not None
    }
    # Numbered, not named: a workload's name comes from outside.
    pictures = {i: f"speedup-{i + 1}.svg" for i in charts}
    makers: dict[str, Callable[[], str]] = {
        "summary.json": lambda: dumps(summary(findings, manifest)) + "\n",
        "cells.csv": lambda: cells_csv(cells, simulated=manifest.simulated),
        "report.md": lambda: render_markdown(findings, manifest, cells, servers, pictures),
        "report.html": lambda: render_html(findings, manifest, cells, servers, read_detail(folder)),
    }
    written = {name: write_whole(folder / name, _bytes(make())) for name, make in makers.items()}
    return written | {pictures[i]: write_whole(folder / pictures[i], _bytes(svg)) for i, svg in charts.items()}


def _bytes(text: str) -> bytes:
    """UTF-8; a lone surrogate from a file name or a server's error becomes a question mark."""
    return text.encode("utf-8", errors="replace")
