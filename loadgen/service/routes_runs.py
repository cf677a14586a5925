"""Routes of runs: list, start, watch, cancel, resume."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from loadgen.clock import now_s
from loadgen.service.asked import prepare, read_body
from loadgen.service.live import Live
from loadgen.service.model import RunList, RunRow, Status, SweepBody
from loadgen.service.problems import Refusal
from loadgen.service.shared import BEARER, Shared, SharedParts, refusals
from loadgen.service.state import ENDED, RunState

router = APIRouter(prefix="/api", tags=["runs"], dependencies=[BEARER])
MAX_STREAMS = 64
LOOK_S = 0.3
KEEP_ALIVE_S = 15.0


@router.get("/runs", responses=refusals(422))
def list_runs(
    shared: SharedParts,
    q: Annotated[str, Query(max_length=200, description="Words that all must stand in a run's facts.")] = "",
    state: RunState | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> RunList:
    """The runs, newest first."""
    found, unreadable = shared.rows.all()
    rows = [shared.with_queue(row) for row in found]
    words = q.lower().split()
    chosen = [row for row in rows if (state is None or row.state is state) and _has(row, words)]
    return RunList(total=len(chosen), unreadable=unreadable, runs=chosen[offset : offset + limit])


@router.post("/runs", status_code=202, responses=refusals(400, 422, 429, 503))
async def start_sweep(body: SweepBody, shared: SharedParts, response: Response) -> RunRow:
    """Starts a sweep, or puts it into the queue if its GPU (the simulator: this machine) is taken."""
    shared.queue.check_room()
    folder = await asyncio.to_thread(lambda: prepare(read_body(body, shared.settings), shared.runs.root))
    await shared.queue.submit(folder)
    response.headers["location"] = f"/api/runs/{folder.run_id}"
    return await asyncio.to_thread(shared.row, folder.run_id)


@router.get("/runs/{run}", responses=refusals(404, 422))
def get_run(run: str, shared: SharedParts) -> RunRow:
    """One run."""
    return shared.row(run)


@router.get(
    "/runs/{run}/summary",
    responses={**refusals(404, 409), 200: {"content": {"application/json": {}}, "description": "summary.json"}},
)
def get_summary(run: str, shared: SharedParts) -> Response:
    """The run's summary.json (its JSON Schema is published with loadgen); 409 before it is written."""
    shared.runs.folder(run)
    try:
        content, media = shared.runs.page(run, "summary.json")
    except Refusal:
        raise Refusal(409, "This run has no summary yet; its sweep writes it when it ends.") from None
    return Response(content, media_type=media)


@router.post("/runs/{run}/cancel", status_code=202, responses=refusals(404, 409, 422))
async def cancel(run: str, shared: SharedParts) -> RunRow:
    """Stops a running sweep as Ctrl-C would (what was measured is kept), or takes a waiting one out of the queue."""
    shared.runs.folder(run)
    await shared.queue.cancel(run)
    return await asyncio.to_thread(shared.row, run)


@router.post("/runs/{run}/resume", status_code=202, responses=refusals(404, 409, 422, 429, 503))
async def resume(run: str, shared: SharedParts) -> RunRow:
    """Goes on with a run that ended before its plan was carried out; measured cells are not measured again."""
    row = await asyncio.to_thread(shared.row, run)
    if row.state is RunState.COMPLETED:
        raise Refusal(409, "This run is complete; start a new sweep.")
    await shared.queue.submit(shared.runs.folder(run))
    return await asyncio.to_thread(shared.row, run)


@router.get(
    "/runs/{run}/events",
    response_class=StreamingResponse,
    responses={
        **refusals(404, 422, 503),
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "`status`: a Status whenever it changes. `cells`: a list of Point; all of them come again "
            "after a reconnect. `end`: the run has ended.",
        },
    },
)
async def watch(run: str, shared: SharedParts) -> StreamingResponse:
    """The run's progress as server-sent events, from its beginning, until it ends."""
    shared.runs.folder(run)
    await asyncio.to_thread(shared.row, run)  # a run that cannot be read is refused before the stream begins
    if len(shared.streams) >= MAX_STREAMS:
        raise Refusal(503, f"{MAX_STREAMS} event streams are open; close one.")
    return StreamingResponse(_events(run, shared), media_type="text/event-stream")


async def _events(run: str, shared: Shared) -> AsyncIterator[str]:
    mark = object()
    shared.streams.add(mark)
    try:
        live = Live(shared.runs.folder(run).path)
        last: str | None = None
        spoke = now_s()
        yield "retry: 1000\n\n"
        while not shared.stopping():
            # The state first: when it says that the run ended, the files hold all of it.
            row = await asyncio.to_thread(shared.row, run)
            points = await asyncio.to_thread(live.poll)
            if points:
                yield _event("cells", json.dumps([point.model_dump() for point in points]))
            status = _status(row, live).model_dump_json()
            if status != last:
                yield _event("status", status)
            elif now_s() - spoke > KEEP_ALIVE_S:
                yield ": still here\n\n"
            else:
                await asyncio.sleep(LOOK_S)
                if row.state not in ENDED:
                    continue
            last, spoke = status, now_s()
            if row.state in ENDED:
                yield _event("end", "{}")
                return
    except Refusal:
        yield _event("end", "{}")  # the folder was removed while we watched
    finally:
        shared.streams.discard(mark)


def _status(row: RunRow, live: Live) -> Status:
    measuring = row.state in (RunState.RUNNING, RunState.STOPPING)
    return Status(
        state=row.state,
        reason=row.reason,
        cells=live.cells,
        cells_planned=max(live.planned or row.cells_planned, live.cells),
        remaining_s=live.remaining_s if measuring else None,
        queue_position=row.queue_position,
        running=live.running if measuring else None,
        servers=live.servers if measuring else {},
        notices=live.notices,
        answer=row.answer,
        files=row.files,
    )


def _event(name: str, data: str) -> str:
    """One event; the data is JSON, which has no line ends."""
    return f"event: {name}\ndata: {data}\n\n"


def _has(row: RunRow, words: list[str]) -> bool:
    facts = [row.run, row.state, row.engine, *row.profiles, *row.workloads, row.answer or ""]
    text = " ".join([*facts, "simulated" if row.simulated else ""]).lower()
    return all(word in text for word in words)
