"""From a body to a checked sweep: what the command line refuses is refused here by the same code, and a bit more."""

from dataclasses import dataclass
from pathlib import Path

from loadgen.commands.sweep_run import prepare_sweep
from loadgen.commands.sweep_setup import SweepRequest
from loadgen.engines.choose import ENGINES, EngineRequest
from loadgen.engines.url import parse_urls
from loadgen.errors import UsageError
from loadgen.profiles.loader import default_directory, list_profiles
from loadgen.service.model import SweepBody
from loadgen.service.settings import Settings
from loadgen.simulator.hardware import PRESETS
from loadgen.store.folder import RunFolder
from loadgen.workloads.registry import list_workloads


@dataclass(frozen=True)
class Asked:
    """A sweep as the commands take it."""

    request: SweepRequest
    engine: EngineRequest
    argv: tuple[str, ...]
    """The command line that does the same."""


def read_body(body: SweepBody, settings: Settings) -> Asked:
    """The sweep that the body asks for. UsageError for a name that is none of those that are offered here.

    Names are compared with lists and never used as paths: from the web no file of this machine is opened.
    """
    folder = settings.profiles or default_directory()
    profiles = list_profiles(folder)
    for name in (*body.profiles, body.against):
        _one_of(name, profiles, "profile")
    for name in body.workloads:
        _one_of(name, [known for known, _ in list_workloads()], "workload")
    _one_of(body.engine, ["auto", *ENGINES], "engine")
    if body.hardware is not None:
        _one_of(body.hardware, list(PRESETS), "hardware")
    if body.model is not None and Path(body.model).exists():
        raise UsageError(f"{body.model} is a path of this machine; from the web only a model's public name is taken.")
    _check_url(body, settings)
    if body.gpu is not None and body.engine != "process":
        raise UsageError("gpu goes with engine process; leave it out, or choose that engine.")
    request = SweepRequest(
        profile=",".join(body.profiles),
        against=body.against,
        workload=",".join(body.workloads),
        levels=_list(body.levels),
        repeats=body.repeats,
        quick=body.quick,
        seed=body.seed,
        order=body.order,
        sessions=body.sessions,
        input_tokens=_list(body.input_tokens),
        temperature=",".join(f"{value:g}" for value in body.temperature),
        max_tokens=body.max_tokens,
        window_s=body.window_s,
        k=body.k,
        refine=body.refine,
        model=body.model,
        hardware=body.hardware,
        profiles_folder=str(folder),
        server_env=(f"CUDA_VISIBLE_DEVICES={body.gpu}",) if body.gpu is not None else (),
    )
    engine = EngineRequest(name=body.engine, url=body.url, model=body.model, hardware=body.hardware, seed=body.seed)
    return Asked(request, engine, argv_of(body))


def prepare(asked: Asked, runs: Path) -> RunFolder:
    """The run's folder with its manifest; UsageError if the sweep could not start."""
    return prepare_sweep(asked.request, asked.engine, runs, asked.argv)


def argv_of(body: SweepBody) -> tuple[str, ...]:
    """The arguments of the same sweep on the command line; defaults are left out."""
    default = SweepBody()
    words = ["sweep", "--profile", ",".join(body.profiles), "--workload", ",".join(body.workloads)]
    for option, value, usual in (
        ("--against", body.against, default.against),
        ("--levels", _list(body.levels), None),
        ("--repeats", body.repeats, None),
        ("--engine", body.engine, default.engine),
        ("--hardware", body.hardware, None),
        ("--model", body.model, None),
        ("--url", body.url, None),
        ("--window", body.window_s, None),
        ("--max-tokens", body.max_tokens, None),
        ("--input-tokens", _list(body.input_tokens), None),
        ("--temperature", _list(body.temperature), _list(default.temperature)),
        ("--k", body.k, None),
        ("--order", body.order, None),
        ("--sessions", body.sessions, default.sessions),
        ("--seed", body.seed, default.seed),
        ("--server-env", f"CUDA_VISIBLE_DEVICES={body.gpu}" if body.gpu is not None else None, None),
    ):
        if value is not None and value != usual:
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return (*words, *(["--refine"] if body.refine else []), *(["--quick"] if body.quick else []))


def _one_of(name: str, known: list[str], what: str) -> None:
    if name not in known:
        raise UsageError(f"There is no {what} {name!r} here; take one of {', '.join(known)}.")


def _check_url(body: SweepBody, settings: Settings) -> None:
    """Only servers that whoever started the service named: others would get load, and the API key, from the web."""
    if body.url is None:
        if body.engine == "url":
            raise UsageError("Engine url needs url: one of the servers that the service was started with.")
        return
    if body.engine not in ("auto", "url"):
        raise UsageError(f"A URL was given, but the engine is {body.engine}; take engine url or leave the URL out.")
    found = parse_urls(body.url)
    for url in [found] if isinstance(found, str) else found.values():
        if url not in settings.servers:
            raise UsageError(
                f"This service may not load that server; start it with `loadgen serve --server URL` to allow it "
                f"({', '.join(settings.servers) or 'none is allowed now'})."
            )


def _list(values: list[int] | list[float] | None) -> str | None:
    return None if values is None else ",".join(f"{value:g}" for value in values)
