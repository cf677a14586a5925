"""The FastAPI application: routes behind the guard, the queue beside them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException

from loadgen import __version__
from loadgen.commands.exporter_runs import RunsCollector
from loadgen.errors import LoadgenError, UsageError
from loadgen.service import routes_compare, routes_pages, routes_plan, routes_runs, routes_service
from loadgen.service.guard import HEADERS, Guard
from loadgen.service.queue import SweepQueue
from loadgen.service.rows import Rows
from loadgen.service.runsfolder import RunsFolder
from loadgen.service.settings import Settings
from loadgen.service.shared import Shared

DESCRIPTION = (
    'Starts, shows, cancels and resumes sweeps. Every refusal is `{"error": sentence}`. A service with a token takes '
    "it as `Authorization: Bearer TOKEN`, or as the cookie that `POST /api/login` sets."
)

ROUTES = (routes_runs, routes_plan, routes_compare, routes_service, routes_pages)


def create_app(settings: Settings, stopping: Callable[[], bool] = lambda: False) -> FastAPI:
    """The application; `stopping` says whether the server is going down, so that open event streams end."""
    runs = RunsFolder(settings.runs)
    queue = SweepQueue(runs, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        await queue.open()
        yield
        await queue.close()

    app = FastAPI(
        title="loadgen",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        # FastAPI's own pages load their scripts from another host; ours is routes_pages' /docs.
        docs_url=None,
        redoc_url=None,
    )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunsCollector(runs.root))
    app.state.shared = Shared(settings, runs, Rows(runs), queue, registry, stopping)
    for routes in ROUTES:
        app.include_router(routes.router)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _wrong_input)
    app.add_exception_handler(LoadgenError, _loadgen_problem)
    app.add_exception_handler(Exception, _fault)
    app.add_middleware(Guard, settings=settings)
    return app


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    known = error if isinstance(error, HTTPException) else HTTPException(500)
    sentence, headers = str(known.detail), dict(known.headers or {})
    if known.status_code == 400:
        sentence = "The body is no JSON in UTF-8; /docs shows what is taken."
    if known.status_code == 405:
        # Starlette names the methods of the first route with this path alone.
        headers["Allow"] = ", ".join(sorted(_methods(request.url.path)))
        sentence = f"{request.method} does not go here; {headers['Allow']} does."
    return JSONResponse({"error": sentence}, known.status_code, headers=headers)


def _methods(path: str) -> set[str]:
    """The methods of every route that has this path; FastAPI's own have GET."""
    routes = [route for module in ROUTES for route in module.router.routes if isinstance(route, APIRoute)]
    return {method for route in routes if route.path_regex.fullmatch(path) for method in route.methods or ()} or {"GET"}


async def _wrong_input(request: Request, error: Exception) -> JSONResponse:
    """The first fault, by its place in the input and without the input itself."""
    del request
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    first = faults[0] if faults else {"loc": (), "msg": "it cannot be read"}
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    return JSONResponse({"error": f"{place}: {first['msg']}; /docs shows what is taken."}, 422)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    """A bug: uvicorn logs it; the guard's headers are put on here, as this answer is made outside of it."""
    del request, error
    return JSONResponse({"error": "The service has a fault; its log tells which."}, 500, headers=HEADERS)


async def _loadgen_problem(request: Request, error: Exception) -> JSONResponse:
    del request
    return JSONResponse({"error": str(error)}, 422 if isinstance(error, UsageError) else 503)
