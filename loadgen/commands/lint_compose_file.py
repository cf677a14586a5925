"""A Compose file as the lint sees it: variables at their defaults, short forms spelt out."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from loadgen.commands.lint_prometheus import ComposePorts
from loadgen.errors import UsageError
from loadgen.profiles.yaml_text import Loader, read_yaml

_VARIABLE = re.compile(r"\$(?:\{(?P<name>\w+)(?:(?P<op>:?[-?+])(?P<default>(?:[^{}]|\{[^{}]*\})*))?\}|(?P<bare>\w+))")
_UNKNOWN = "\0"
"""Stands for a variable without a default: nothing can be said of it."""


class _Loader(Loader):
    """Reads Compose's own tags, `!override` and `!reset`, as what they hold."""


def _untagged(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_multi_constructor("!", _untagged)


@dataclass(frozen=True)
class Port:
    """One published port."""

    host_ip: str
    published: str
    """Empty: Docker picks one."""
    target: str


@dataclass(frozen=True)
class Service:
    """One service. `raw` is as written, with its `${…}`; the rest has defaults filled in."""

    name: str
    raw: Mapping[str, Any]

    @property
    def image(self) -> str:
        """The image; empty if it is built or not known."""
        return known(self.raw.get("image", ""))

    @property
    def words(self) -> tuple[str, ...]:
        """Entrypoint and command, as words."""
        return tuple(resolve(word) for word in self.raw_words)

    @property
    def raw_words(self) -> tuple[str, ...]:
        """The same with their `${…}`."""
        return (*_words(self.raw.get("entrypoint")), *_words(self.raw.get("command")))

    @property
    def environment(self) -> dict[str, str]:
        """As written: a value may be a `${…}`; a name without a value comes from the host's environment."""
        found = self.raw.get("environment") or {}
        if isinstance(found, list):
            pairs = [str(item).partition("=") for item in found]
            return {name: value if sign else f"${{{name}}}" for name, sign, value in pairs}
        return {str(name): f"${{{name}}}" if value is None else str(value) for name, value in found.items()}

    @property
    def is_model_server(self) -> bool:
        """True for vLLM: by its image or by what it runs."""
        text = " ".join(self.words)
        return "vllm" in self.image or "vllm serve" in text or "vllm.entrypoints" in text

    @property
    def ports(self) -> tuple[Port, ...]:
        """The published ports."""
        return tuple(_port(item) for item in self.raw.get("ports") or [])

    @property
    def bind_mounts(self) -> tuple[tuple[str, str], ...]:
        """(source, place inside) of each volume; the source is empty for an anonymous one."""
        return tuple(_mount(item) for item in self.raw.get("volumes") or [])

    @property
    def mounts(self) -> tuple[str, ...]:
        """Where volumes are mounted, inside."""
        return tuple(target for _, target in self.bind_mounts)

    @property
    def gpu_devices(self) -> list[Mapping[str, Any]]:
        """`deploy.resources.reservations.devices`."""
        at: Any = self.raw
        for key in ("deploy", "resources", "reservations", "devices"):
            at = at.get(key) if isinstance(at, Mapping) else None
        return [item for item in at or [] if isinstance(item, Mapping)]

    def option(self, *names: str) -> str | None:
        """The last value of a command-line option; None if it does not stand there or is not known."""
        value = next((found for name in names if (found := option_value(self.words, name)) is not None), None)
        return None if value is None or _UNKNOWN in value else value


def option_value(words: Sequence[str], name: str) -> str | None:
    """The last value of an option among the words: `--port 8000` or `--port=8000`; None if it is not there."""
    value = None
    for index, word in enumerate(words):
        head, sign, tail = word.partition("=")
        if head == name:
            value = tail if sign else words[index + 1] if index + 1 < len(words) else None
    return value


def read_compose(path: Path) -> list[Service]:
    """The services; UsageError if the file is none."""
    found = read_yaml(path, _Loader)
    services = found.get("services") if isinstance(found, dict) else None
    if not isinstance(services, dict):
        raise UsageError(f"{path} has no services; is it a Compose file?")
    return [Service(name, raw) for name, raw in services.items() if isinstance(raw, dict)]


def known(value: object) -> str:
    """The text with variables at their defaults; empty if one of them has none."""
    text = resolve(value)
    return "" if _UNKNOWN in text else text


def resolve(value: object) -> str:
    """The text with variables at their defaults, and a mark where one has none."""

    def default(match: re.Match[str]) -> str:
        if match["op"] in ("-", ":-"):
            return resolve(match["default"] or "")
        return _UNKNOWN

    return _VARIABLE.sub(default, str(value).replace("$$", "\1")).replace("\1", "$")


def compose_ports(services: list[Service]) -> tuple[ComposePorts, ...]:
    """The services' ports under every name they answer to, for the check of scrape targets."""
    return tuple(ports for service in services for ports in _named_ports(service))


def _named_ports(service: Service) -> Iterator[ComposePorts]:
    inside = frozenset(int(port.target) for port in service.ports if port.target.isdecimal())
    outside = frozenset(int(port.published) for port in service.ports if port.published.isdecimal())
    networks = service.raw.get("networks")
    found = [net.get("aliases") or [] for net in networks.values() if net] if isinstance(networks, dict) else []
    names = [service.name, service.raw.get("container_name"), service.raw.get("hostname")]
    for name in dict.fromkeys([*filter(None, names), *(alias for aliases in found for alias in aliases)]):
        yield ComposePorts(str(name), inside, outside)


def _words(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    # Blanks inside ${…} part no words.
    marked = _VARIABLE.sub(lambda m: m[0].replace(" ", "\2"), str(value))
    try:
        words = shlex.split(marked)
    except ValueError:
        words = marked.split()
    return [word.replace("\2", " ") for word in words]


def _port(item: object) -> Port:
    if isinstance(item, Mapping):
        return Port(
            resolve(item.get("host_ip", "")), resolve(item.get("published", "")), resolve(item.get("target", ""))
        )
    text = resolve(item).split("/")[0]
    match = re.fullmatch(r"(?:(?P<ip>\[[^\]]*\]|[^:]*):)?(?:(?P<out>[^:]*):)?(?P<target>[^:]*)", text)
    if match is None:
        return Port("", "", text)
    if match["out"] is None:  # one colon: HOST:CONTAINER
        return Port("", match["ip"] or "", match["target"])
    return Port(match["ip"] or "", match["out"], match["target"])


def _mount(item: object) -> tuple[str, str]:
    if isinstance(item, Mapping):
        return resolve(item.get("source", "")), resolve(item.get("target", ""))
    source, sign, rest = resolve(item).partition(":/")
    return (source, "/" + rest.split(":")[0]) if sign else ("", source)
