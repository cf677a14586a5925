"""Writes the reports of one run into its folder."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from loadgen.analysis.model import Findings
from loadgen.errors import UsageError
from loadgen.report.cells_csv import cells_csv
from loadgen.report.detail import read_detail
from loadgen.report.html import render_html
from loadgen.report.markdown import render_markdown
from loadgen.report.summary import dumps, summary
from loadgen.report.svg import speedup_svg
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
    charts = {i: svg for i, c in enumerate(findings.conditions) if (svg := speedup_svg(c)) is not None}
    # Numbered, not named: a workload's name comes from outside.
    pictures = {i: f"speedup-{i + 1}.svg" for i in charts}
    makers: dict[str, Callable[[], str]] = {
        "summary.json": lambda: dumps(summary(findings, manifest)) + "\n",
        "cells.csv": lambda: cells_csv(cells),
        "report.md": lambda: render_markdown(findings, manifest, cells, servers, pictures),
        "report.html": lambda: render_html(findings, manifest, cells, servers, read_detail(folder)),
    }
    written = {name: write_whole(folder / name, make()) for name, make in makers.items()}
    return written | {pictures[i]: write_whole(folder / pictures[i], svg) for i, svg in charts.items()}


def write_whole(path: Path, text: str) -> Path:
    """The path; the file holds the whole text, or what it held before. Raises UsageError if that is not possible."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="", errors="replace") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        sentence = f"Cannot write {path} ({error.strerror or error}); free space or give another folder."
        raise UsageError(sentence) from error
    return path
