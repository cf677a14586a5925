"""Runs beside each other: what `loadgen compare` and `loadgen report RUN RUN` say."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from loadgen.analysis.compare import compare
from loadgen.commands.several import run_facts
from loadgen.report.compare_text import comparison_data
from loadgen.report.side_by_side import render_side_by_side
from loadgen.service.guard import REPORT_POLICY
from loadgen.service.problems import Refusal
from loadgen.service.shared import BEARER, SharedParts, refusals

router = APIRouter(tags=["compare"], dependencies=[BEARER])
RunName = Annotated[str, Query(min_length=1, max_length=200)]


@router.get(
    "/api/compare",
    responses={**refusals(404, 422), 200: {"description": "As `loadgen compare --json` prints it."}},
)
def compare_runs(before: RunName, after: RunName, shared: SharedParts) -> dict[str, Any]:
    """What differs between two runs, and what changed, with intervals.

    Where more than one thing differs, no change can be put down to one of them; `differences` lists them all.
    """
    if before == after:
        raise Refusal(422, "before and after are the same run; give two.")
    return comparison_data(compare(*(run_facts(shared.runs.folder(name)) for name in (before, after))))


@router.get("/side-by-side", include_in_schema=False)
def side_by_side(shared: SharedParts, run: Annotated[list[str], Query(min_length=2, max_length=6)]) -> Response:
    """The runs as one report page that opens offline."""
    facts = [run_facts(shared.runs.folder(name)) for name in dict.fromkeys(run)]
    if len(facts) < 2:
        raise Refusal(422, "Give two runs or more.")
    page = render_side_by_side(facts)
    return Response(page, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})
