"""Routes of the service itself: what can be asked for, health, log-in."""

import asyncio
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import BaseModel

from loadgen import __version__
from loadgen.commands.sweep_setup import LEVELS, LEVELS_QUICK
from loadgen.engines.choose import ENGINES
from loadgen.errors import UsageError
from loadgen.profiles.loader import default_directory, list_profiles, load_profile
from loadgen.service.guard import COOKIE, cookie_value, same
from loadgen.service.model import LoginBody, Named, Options
from loadgen.service.problems import Refusal
from loadgen.service.shared import BEARER, SharedParts, refusals
from loadgen.simulator.hardware import DEFAULT_HARDWARE, PRESETS
from loadgen.workloads.registry import list_workloads

router = APIRouter(tags=["service"])
WRONG_TOKEN_S = 0.5
"""A wrong token waits so long: guessing takes ages, a typing error does not."""
ENGINE_WORDS = {
    "auto": "the first of these that works here",
    "simulator": "a simulated vLLM; needs no GPU",
    "process": "a local vLLM",
    "docker": "vLLM in Docker, with an NVIDIA GPU",
    "url": "servers that run already",
}


class Health(BaseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get("/health")
def health() -> Health:
    """Says that the service is up; asks for no token."""
    return Health()


@router.get(
    "/metrics",
    dependencies=[BEARER],
    response_class=Response,
    responses={
        **refusals(),
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."},
    },
)
def metrics(shared: SharedParts) -> Response:
    """The runs as Prometheus metrics, the same as those of `loadgen exporter`."""
    return Response(generate_latest(shared.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/api/options", dependencies=[BEARER], responses=refusals(422))
def options(shared: SharedParts) -> Options:
    """What a sweep can be made of here."""
    settings = shared.settings
    folder = settings.profiles or default_directory()
    engines = [name for name in ("auto", *ENGINES) if name != "url" or settings.servers]
    return Options(
        version=__version__,
        profiles=[Named(name=name, description=_about(name, folder)) for name in list_profiles(folder)],
        workloads=[Named(name=name, description=text) for name, text in list_workloads()],
        engines=[Named(name=name, description=ENGINE_WORDS.get(name, "")) for name in engines],
        hardware=[Named(name=name, description=preset.description) for name, preset in PRESETS.items()],
        servers=list(settings.servers),
        default_hardware=DEFAULT_HARDWARE,
        default_levels=LEVELS,
        quick_levels=LEVELS_QUICK,
        needs_token=settings.token is not None,
    )


@router.post("/api/login", status_code=204, responses=refusals(400, 422))
async def login(body: LoginBody, shared: SharedParts, request: Request, response: Response) -> None:
    """Sets a cookie that stands for the token."""
    token = shared.settings.token
    if token is None:
        return
    if not same(body.token, token):
        await asyncio.sleep(WRONG_TOKEN_S)
        raise Refusal(401, "That is not the token that this service was started with (LOADGEN_TOKEN).")
    response.set_cookie(
        COOKIE,
        cookie_value(token),
        max_age=7 * 86400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


@router.post("/api/logout", status_code=204, responses=refusals())
def logout(response: Response) -> None:
    """Takes the cookie back."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _about(name: str, folder: Path) -> str:
    try:
        profile = load_profile(name, folder)
    except UsageError as error:
        return f"cannot be used: {error}"
    if profile.speculative is None:
        return "no speculation"
    return f"{profile.method}, {profile.speculative.num_speculative_tokens} draft tokens"
