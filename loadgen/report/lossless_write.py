"""Writes a same-quality run's report.html and report.md, and reads its result back."""

from pathlib import Path

from loadgen.analysis.lossless_model import LosslessFinding
from loadgen.errors import UsageError
from loadgen.report.lossless_html import render_lossless_html
from loadgen.report.lossless_json import LosslessAbout
from loadgen.report.lossless_markdown import render_lossless_markdown
from loadgen.store.codec import decode
from loadgen.store.folder import write_whole

MAKERS = {"report.html": render_lossless_html, "report.md": render_lossless_markdown}


def write_lossless(folder: Path, finding: LosslessFinding, about: LosslessAbout) -> dict[str, Path]:
    """File name → path, each written whole. UsageError if the folder cannot be written."""
    return {
        name: write_whole(folder / name, make(finding, about).encode("utf-8", errors="replace"))
        for name, make in MAKERS.items()
    }


def read_result(path: Path) -> tuple[LosslessFinding, LosslessAbout]:
    """What result.json holds; UsageError if it is damaged or of another version."""
    content = path.read_bytes()
    try:
        return decode(content, LosslessFinding), decode(content, LosslessAbout)
    except ValueError as error:
        raise UsageError(
            f"{path} cannot be read ({error}): damaged, or of another version of loadgen; test again."
        ) from error
