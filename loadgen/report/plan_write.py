"""Writes plan.json, plan.md and plan.html into a run's folder."""

from collections.abc import Callable
from pathlib import Path

from loadgen.analysis.capacity_model import Plan
from loadgen.report.plan_html import render_plan_html
from loadgen.report.plan_json import plan_json
from loadgen.report.plan_markdown import render_plan_markdown
from loadgen.store.folder import write_whole

MAKERS: dict[str, Callable[[Plan], str]] = {
    "plan.json": plan_json,
    "plan.md": render_plan_markdown,
    "plan.html": render_plan_html,
}


def write_plan(folder: Path, plan: Plan) -> dict[str, Path]:
    """File name → path, each written whole. UsageError if the folder cannot be written."""
    return {
        name: write_whole(folder / name, make(plan).encode("utf-8", errors="replace")) for name, make in MAKERS.items()
    }
