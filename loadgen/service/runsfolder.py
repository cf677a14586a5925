"""The runs folder, and nothing beside it: names are checked, links are not followed."""

import os
import re
import stat
from pathlib import Path

from loadgen.service.problems import no_run
from loadgen.store.folder import RunFolder

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
PROGRESS = "progress.jsonl"
"""What the sweep of a service tells while it runs: `--json`'s lines, and whatever else it writes on stderr."""
PAGES = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "summary.json": "application/json",
    "cells.csv": "text/csv; charset=utf-8",
    "plan.html": "text/html; charset=utf-8",
    "plan.md": "text/markdown; charset=utf-8",
    "plan.json": "application/json",
}
SVG = re.compile(r"speedup-[1-9][0-9]{0,3}\.svg")


class RunsFolder:
    """Access by name to the run folders right below one folder."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()

    def names(self) -> list[str]:
        """The names of all runs, the newest first as their names begin with the time."""
        with os.scandir(self.root) as entries:
            found = [e.name for e in entries if NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
        return sorted((name for name in found if self._holds_run(name)), reverse=True)

    def folder(self, name: str) -> RunFolder:
        """The run of that name; 404 if there is none, or if it holds a link (it could lead anywhere)."""
        if not NAME.fullmatch(name) or not self._holds_run(name):
            raise no_run(name)
        return RunFolder(self.root / name)

    def page(self, name: str, file: str) -> tuple[bytes, str]:
        """(content, media type) of a report file of a run; 404 for any other file."""
        media = PAGES.get(file) or ("image/svg+xml" if SVG.fullmatch(file) else None)
        if media is None:
            raise no_run(name)
        folder = self.folder(name).path
        try:
            descriptor = os.open(folder / file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            raise no_run(name) from None
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise no_run(name)
            return opened.read(), media

    def _holds_run(self, name: str) -> bool:
        path = self.root / name
        try:
            if not stat.S_ISDIR(path.lstat().st_mode):
                return False
            with os.scandir(path) as entries:
                inside = {entry.name: entry.is_symlink() for entry in entries}
        except OSError:
            return False
        return "manifest.json" in inside and not any(inside.values())
