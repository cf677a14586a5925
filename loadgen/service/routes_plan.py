"""Capacity planning over HTTP: `loadgen plan` as a child process, its arguments from a checked body."""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from loadgen.service.problems import Refusal
from loadgen.service.shared import BEARER, SharedParts, refusals

router = APIRouter(prefix="/api", tags=["plan"], dependencies=[BEARER])
PLAN_S = 120.0
AT_ONCE = asyncio.Semaphore(2)
"""A plan reads all requests of a run; more of them at once would only take the machine from the sweeps."""
Short = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.,=/% -]+$")]


class PlanBody(BaseModel):
    """The flags of `loadgen plan` that need no file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slos: list[Short] = Field(min_length=1, max_length=8, description="Such as ttft_p99=500ms.")
    rate: Short | None = Field(default=None, description="Demand as a rate: 12/s.")
    users: int | None = Field(default=None, ge=1, le=10**9, description="Demand as users; needs think.")
    think: Short | None = Field(default=None, description="A user's mean pause: 20s.")
    mix: Annotated[str, Field(max_length=500, pattern=r"^[A-Za-z0-9_.,= -]+$")] | None = None
    headroom: Short = "20%"
    spares: int = Field(default=1, ge=0, le=1000)
    gpus_per_server: int = Field(default=1, ge=1, le=1024)
    gpu_hour: float | None = Field(default=None, ge=0, le=1e6)
    gpu_watts: float | None = Field(default=None, ge=0, le=1e5)


@router.post(
    "/runs/{run}/plan",
    responses={**refusals(400, 404, 422, 503), 200: {"description": "plan.json (its JSON Schema is published)."}},
)
async def make_plan(run: str, body: PlanBody, shared: SharedParts) -> dict[str, Any]:
    """The highest load within the objectives for each setting, and the GPUs that the demand takes.

    Also writes plan.json, plan.md and plan.html into the run's folder.
    """
    folder = shared.runs.folder(run).path
    async with AT_ONCE:
        code, output, words = await _run((*shared.settings.plan, *arguments(body), "--json"), folder)
    try:
        plan: dict[str, Any] = json.loads(output)
    except ValueError:
        sentence = next((line for line in reversed(words.splitlines()) if line.strip()), "")
        raise Refusal(422, sentence.removeprefix("loadgen: ")[:500] or f"loadgen plan ended with {code}.") from None
    return plan


def arguments(body: PlanBody) -> list[str]:
    """The body as options; `--name=value`, so that no value is ever taken for an option."""
    words = [f"--slo={slo}" for slo in body.slos]
    for option, value in (
        ("rate", body.rate),
        ("users", body.users),
        ("think", body.think),
        ("mix", body.mix),
        ("headroom", body.headroom),
        ("spares", body.spares),
        ("gpus-per-server", body.gpus_per_server),
        ("gpu-hour", body.gpu_hour),
        ("gpu-watts", body.gpu_watts),
    ):
        if value is not None:
            words.append(f"--{option}={value}")
    return words


async def _run(command: tuple[str, ...], folder: Path) -> tuple[int | None, str, str]:
    """(exit code, stdout, stderr); Refusal 503 after PLAN_S."""
    process = await asyncio.create_subprocess_exec(
        *command,
        "--",
        str(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name != "LOADGEN_TOKEN"},
    )
    try:
        async with asyncio.timeout(PLAN_S):
            output, words = await process.communicate()
    except TimeoutError:
        raise Refusal(
            503, f"The plan took more than {PLAN_S:g} s; use `loadgen plan` for a run of this size."
        ) from None
    finally:
        # Also if whoever asked has gone away.
        with contextlib.suppress(ProcessLookupError):
            if process.returncode is None:
                process.kill()
    return process.returncode, output.decode("utf-8", "replace"), words.decode("utf-8", "replace")
