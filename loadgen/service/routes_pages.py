"""The page and its files, and the report pages of runs; everything comes from this machine."""

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Header, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from loadgen.service.guard import REPORT_POLICY
from loadgen.service.problems import Refusal
from loadgen.service.shared import SharedParts

router = APIRouter(include_in_schema=False)
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FRAME = "frame.html"
PLOTLY = "plotly-basic.min.js"


@router.get("/")
def index() -> Response:
    """New sweep, and the list of runs."""
    return _page("index.html")


@router.get("/run/{run}")
def run_page(run: str) -> Response:
    """One run: live, then its answer."""
    del run  # the page's script reads it from the address
    return _page("run.html")


@router.get("/compare")
def compare_page() -> Response:
    """Runs side by side."""
    return _page("compare.html")


@router.get("/plan")
def plan_page() -> Response:
    """Capacity planning from a run."""
    return _page("plan.html")


@router.get("/docs")
def docs_page() -> Response:
    """The API, drawn from /openapi.json."""
    return _page("docs.html")


@router.get("/login")
def login_page() -> Response:
    """Asks for the token."""
    return _page("login.html")


@router.get("/static/{name}")
def static(name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """A file of the page."""
    found = _files().get(name)
    if found is None:
        raise Refusal(404, "There is no such file.")
    content, media, tag = found
    headers = {"etag": tag, "cache-control": "no-cache"}
    if if_none_match == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media, headers=headers)


@router.get("/runs/{run}/{file}")
def report_file(run: str, file: str, shared: SharedParts) -> Response:
    """A report file of a run."""
    content, media = shared.runs.page(run, file)
    headers = {"content-security-policy": REPORT_POLICY}
    if media.startswith(("text/csv", "text/markdown")):
        headers["content-disposition"] = f'attachment; filename="{run}-{file}"'
    return Response(content, media_type=media, headers=headers)


def _page(name: str) -> Response:
    content, media, _ = _files()[name]
    return Response(content, media_type=media)


def _framed(name: str) -> bytes:
    """The page within what all pages have: head, and the bar at the top. Nothing from outside goes into it."""
    environment = Environment(
        loader=PackageLoader("loadgen.service", "static"), autoescape=True, trim_blocks=True, undefined=StrictUndefined
    )
    return environment.get_template(name).render().encode()


@lru_cache(maxsize=1)
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Name → (content, media type, tag) of every file that is shipped for the page: nothing else can be asked for."""
    paths = [path for path in files("loadgen.service").joinpath("static").iterdir() if path.is_file()]
    paths.append(files("loadgen.report").joinpath("assets", PLOTLY))
    found: dict[str, tuple[bytes, str, str]] = {}
    for path in paths:
        media = MEDIA.get("." + path.name.rpartition(".")[2])
        if media and path.name != FRAME:
            content = _framed(path.name) if path.name.endswith(".html") else path.read_bytes()
            found[path.name] = content, media, f'"{sha256(content).hexdigest()[:20]}"'
    return found
