"""`speculative-config` as data to a checked `SpeculativeConfig`."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from loadgen.errors import UsageError
from loadgen.profiles.model import SpeculativeConfig
from loadgen.profiles.schedule import parse_schedule
from loadgen.profiles.schema import METHODS, UNUSABLE_METHODS, all_fields, methods_with_field
from loadgen.profiles.source import Source
from loadgen.profiles.values import fault_of, short
from loadgen.profiles.versions import SCHEDULE_KILLS_ENGINE, instead_of_batch_size_limit

KEY = "speculative-config"
SCHEDULE = "num_speculative_tokens_per_batch_size"


def read_speculative(source: Source, key: str) -> SpeculativeConfig:
    """The checked config under `key` of the file; UsageError with file, line, cause and cure otherwise."""
    where = source.at(key)
    # vLLM itself turns dashes into underscores here (EngineArgs.create_speculative_config).
    raw = {str(name).replace("-", "_"): value for name, value in _mapping(source.data[key], where).items()}
    method = _method(raw, where)
    _refuse_batch_size_limit(raw, source.at(key, "disable_by_batch_size"))
    _refuse_foreign_fields(raw, method, lambda name: source.at(key, name))
    for name, value in raw.items():
        if fault := fault_of(name, value):
            raise UsageError(f"{source.at(key, name)}: {name} {fault}.")
    schema = METHODS[method]
    if "num_speculative_tokens" not in raw and schema.k_default is None:
        raise UsageError(f"{where}: {method} has no num_speculative_tokens; add it (drafts per step, 1 or more).")
    try:
        checked = schema.model_validate({**raw, "method": method})
    except ValidationError as error:
        raise UsageError(_sentence(error, source, key)) from None
    schedule = None
    if raw.get(SCHEDULE) is not None:
        if method in SCHEDULE_KILLS_ENGINE:
            raise UsageError(
                f"{source.at(key, SCHEDULE)}: {method} with a schedule ends vLLM's engine at the first step whose K "
                f"differs (an assertion, not checked at start); remove {SCHEDULE}."
            )
        try:
            schedule = parse_schedule(raw[SCHEDULE])
        except UsageError as error:
            raise UsageError(f"{source.at(key, SCHEDULE)}: {error}") from None
    draft = raw.get("model") if method != "custom_class" else None
    return SpeculativeConfig(
        method=method,
        num_speculative_tokens=checked.num_speculative_tokens,
        raw=raw,
        schedule=schedule,
        draft_model=draft,
        synthetic_acceptance_rates=_rates(checked.synthetic_acceptance_rates, raw, checked.num_speculative_tokens),
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` if a known name is near, else nothing."""
    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def _mapping(value: object, where: str) -> dict[Any, Any]:
    if isinstance(value, str):
        # What the command line takes; vLLM accepts the same text in a file.
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise UsageError(f"{where}: {KEY} is text that is no JSON; write it as a nested mapping.") from None
    if not isinstance(value, dict) or not value:
        raise UsageError(
            f"{where}: {KEY} is empty or no mapping; give method and num_speculative_tokens, or remove it."
        )
    return value


def _method(raw: dict[str, Any], where: str) -> str:
    method = raw.get("method")
    if method is None:
        raise UsageError(
            f"{where}: {KEY} names no method, and vLLM's guess from the checkpoint's name can be wrong; "
            f"add method, one of {', '.join(METHODS)}."
        )
    name = str(method)
    if name in UNUSABLE_METHODS:
        raise UsageError(f"{where}: method {name} cannot be measured: {UNUSABLE_METHODS[name]}.")
    if name.endswith("_mtp"):
        raise UsageError(f"{where}: method {name} is an old name that vLLM maps to mtp; write mtp.")
    if name not in METHODS:
        raise UsageError(f"{where}: unknown method {name!r}{nearest(name, METHODS)}; known are {', '.join(METHODS)}.")
    return name


def _refuse_batch_size_limit(raw: dict[str, Any], where: str) -> None:
    if "disable_by_batch_size" in raw:
        raise UsageError(
            f"{where}: disable_by_batch_size does nothing in vLLM's V1 engine and stops its start from 0.17 on; "
            f"remove it, and {instead_of_batch_size_limit(None)}."
        )


def _refuse_foreign_fields(raw: dict[str, Any], method: str, at: Any) -> None:
    for field in raw:
        if field in METHODS[method].model_fields:
            continue
        owners = methods_with_field(field)
        if field == "tensor_parallel_size":
            raise UsageError(f"{at(field)}: vLLM refuses tensor_parallel_size here; write draft_tensor_parallel_size.")
        if owners:
            raise UsageError(f"{at(field)}: {field} belongs to {', '.join(owners)}, not to {method}; remove it.")
        raise UsageError(
            f"{at(field)}: {field} is no field of {KEY}{nearest(field, all_fields())}; correct or remove it."
        )


def _rates(rates: list[float] | None, raw: dict[str, Any], k: int) -> tuple[float, ...] | None:
    """Per-position acceptance; from a mean length by vLLM's least-variance rule (`_acceptance_length_to_rates`)."""
    if rates is not None:
        return tuple(rates)
    length = raw.get("synthetic_acceptance_length")
    if length is None:
        return None
    accepted = float(length) - 1.0
    return tuple(min(1.0, max(0.0, accepted - position)) for position in range(k))


def _sentence(error: ValidationError, source: Source, key: str) -> str:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    where = source.at(key, str(first["loc"][0])) if first["loc"] else source.at(key)
    message = str(first["msg"]).removeprefix("Value error, ")
    if not field:
        return f"{where}: {message}."
    if first["type"] == "missing":
        return f"{where}: {field} is missing; add it (the draft's checkpoint, a name or a folder)."
    return f"{where}: {field} is {short(first['input'])}: {message[0].lower()}{message[1:]}; correct it."
