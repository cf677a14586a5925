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
from loadgen.store.model import CellResult, Manifest, ServerFacts


def write_reports(
    folder: Path,
    findings: Findings,
    manifest: Manifest,
    cells: Sequence[CellResult],
    servers: Sequence[ServerFacts],
) -> dict[str, Path]:
    """File name → path of summary.json, cells.csv, report.md and report.html, each whole or not there.

    The figures come first, so that a fault in a page leaves them. Raises UsageError if the folder cannot be written.
    """
    makers: dict[str, Callable[[], str]] = {
        "summary.json": lambda: dumps(summary(findings, manifest)) + "\n",
        "cells.csv": lambda: cells_csv(cells),
        "report.md": lambda: render_markdown(findings, manifest, cells, servers),
        "report.html": lambda: render_html(findings, manifest, cells, servers, read_detail(folder)),
    }
    written: dict[str, Path] = {}
    for name, make in makers.items():
        path = folder / name
        write_whole(path, make())
        written[name] = path
    return written


def write_whole(path: Path, text: str) -> None:
    """Nothing; the file holds the whole text, or what it held before. Raises UsageError if that is not possible."""
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
