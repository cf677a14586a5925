"""Profiles by name or path: from a vLLM config file to a checked `ServerProfile`, and back."""

from pathlib import Path
from typing import Any

import yaml

from loadgen.errors import UsageError
from loadgen.profiles.model import ServerProfile, SpeculativeConfig
from loadgen.profiles.pairs import targets_of
from loadgen.profiles.source import Source, read_source
from loadgen.profiles.speculative import KEY, nearest, read_speculative
from loadgen.profiles.values import fault_of
from loadgen.profiles.yaml_text import read_text

_INSIDE_ONLY = ("method", "num_speculative_tokens", "num_speculative_tokens_per_batch_size", "prompt_lookup_max")
_SECRETS = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}
_SHORTHANDS = ("spec-method", "spec-model", "spec-tokens")


def default_directory() -> Path:
    """`server_profiles` of the working folder if there is one, else the one beside the package."""
    here = Path("server_profiles")
    return here if here.is_dir() else Path(__file__).resolve().parents[2] / "server_profiles"


def list_profiles(directory: Path | None = None) -> list[str]:
    """The names of the profiles in a folder, `baseline` first, then by name. UsageError if the folder is not there."""
    folder = directory or default_directory()
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder} with profiles; name one, or run in loadgen's project folder.")
    names = {path.stem for pattern in ("*.yaml", "*.yml") for path in folder.glob(pattern) if path.is_file()}
    return sorted(names, key=lambda name: (name != "baseline", name))


def load_profile(name_or_path: str | Path, directory: Path | None = None) -> ServerProfile:
    """The checked profile: a name in the folder (`ngram`), or the path of a `.yaml` file.

    Raises UsageError with one sentence (file, line, cause, cure) for whatever would fail at a server's start or
    measure something else than it says.
    """
    path = _find(str(name_or_path), directory or default_directory())
    text = read_text(path)
    return parse_profile(text, name=path.stem, label=str(path), path=path)


def parse_profile(text: str, *, name: str, label: str, path: Path | None = None) -> ServerProfile:
    """The checked profile in this text; `label` stands for the file in errors."""
    source = read_source(text, label)
    _check_top_level(source)
    keys = [key for key in source.data if key.replace("_", "-") == KEY]
    speculative = read_speculative(source, keys[0]) if keys else None
    settings = dict(source.data)
    if speculative:
        settings.pop(keys[0])
        settings[KEY] = dict(speculative.raw)
    targets = targets_of(speculative.draft_model) if speculative else ()
    return ServerProfile(
        name=name,
        settings=settings,
        speculative=speculative,
        required_model=targets[0] if targets else None,
        path=path,
        notes=tuple(_notes(speculative)),
    )


def dump_profile(profile: ServerProfile) -> str:
    """The profile as the YAML file that `vllm serve --config` takes; `speculative-config` is a nested mapping."""
    if not profile.settings:
        # An empty file is no mapping for vLLM's reader, which then fails; an empty mapping is one.
        return "{}\n"
    return yaml.safe_dump(_plain(profile.settings), sort_keys=False, default_flow_style=None, width=4096)


def _find(text: str, directory: Path) -> Path:
    path = Path(text)
    if path.suffix in (".yaml", ".yml") or "/" in text:
        if path.suffix not in (".yaml", ".yml"):
            raise UsageError(f"{text} does not end with .yaml; vLLM takes only .yaml and .yml config files.")
        if not path.is_file():
            raise UsageError(f"There is no profile file {text}; check the path.")
        return path
    names = list_profiles(directory)
    if text not in names:
        raise UsageError(f"Unknown profile {text!r}{nearest(text, names)}; known are {', '.join(names)}.")
    found = [directory / f"{text}{suffix}" for suffix in (".yaml", ".yml")]
    return next(candidate for candidate in found if candidate.is_file())


def _check_top_level(source: Source) -> None:
    """Only what is surely a fault: vLLM has hundreds of options, and each release has its own."""
    seen: dict[str, str] = {}
    for key, value in source.data.items():
        name = key.replace("_", "-")
        where = source.at(key)
        if name in seen:
            raise UsageError(f"{where}: {key} and {seen[name]} are the same option of vLLM; remove one.")
        seen[name] = key
        if key.replace("-", "_") in _INSIDE_ONLY:
            raise UsageError(f"{where}: {key} belongs inside {KEY}; indent it there.")
        if name in _SHORTHANDS:
            raise UsageError(f"{where}: {key} is a command-line shorthand; write it inside {KEY}.")
        if key.startswith("-"):
            raise UsageError(f"{where}: {key} has leading dashes; in a config file write {key.lstrip('-')}.")
        if name in _SECRETS:
            raise UsageError(f"{where}: {key} would be stored with every run; remove it and export {_SECRETS[name]}.")
        if name == "disable-log-stats" and value:
            raise UsageError(f"{where}: {key} takes away the metrics that loadgen reads; remove it.")
        fault = None if name == KEY else fault_of(name, value)
        if fault and value is not None:
            raise UsageError(f"{where}: {key} {fault}.")
        if value is None:
            raise UsageError(f"{where}: {key} has no value, and vLLM would read the word None; fill or remove it.")


def _notes(speculative: SpeculativeConfig | None) -> list[str]:
    if speculative is None:
        return []
    raw: dict[str, Any] = dict(speculative.raw)
    notes: list[str] = []
    if speculative.method in ("ngram", "ngram_gpu") and not {"prompt_lookup_min", "prompt_lookup_max"} & raw.keys():
        notes.append(
            "prompt_lookup_min and prompt_lookup_max are not set, so vLLM looks up 5 words or nothing, which seldom "
            "matches; set them, for instance to 2 and 5."
        )
    if raw.get("max_model_len") is not None:
        notes.append("max_model_len inside speculative-config has no effect in vLLM's V1 engine; remove it.")
    over = [k for _, _, k in speculative.schedule or () if k > speculative.num_speculative_tokens]
    if over:
        notes.append(
            f"The schedule's K {max(over)} is above num_speculative_tokens {speculative.num_speculative_tokens}, and "
            "vLLM silently takes the lower; raise num_speculative_tokens or lower the schedule."
        )
    return notes


def _plain(value: Any) -> Any:
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
