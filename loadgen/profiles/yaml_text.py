"""YAML of other people's files: plain data, or one sentence with the line."""

from pathlib import Path
from typing import Any

import yaml

from loadgen.errors import UsageError

MAX_ALIASES = 20
"""More than a person writes; a dozen aliases of aliases can stand for more values than memory holds."""


class Loader(yaml.SafeLoader):
    """SafeLoader, whose faults over a value (`!!int x`, a date that no calendar has) are YAML errors with a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The node's value."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError):
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"a value is no {kind}", node.start_mark) from None


def read_text(path: Path) -> str:
    """The file's text, without a byte order mark; UsageError for a file that is none, or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def load_yaml(text: str, label: str, loader: type[Loader] = Loader, max_aliases: int | None = MAX_ALIASES) -> Any:
    """The text as data. UsageError with `label` and the line where it is no YAML, or has too many aliases."""
    try:
        if max_aliases is not None:
            events = yaml.parse(text, Loader=yaml.SafeLoader)
            if sum(isinstance(event, yaml.AliasEvent) for event in events) > max_aliases:
                raise UsageError(f"{label}: more than {max_aliases} aliases (*name); write the values out.")
        return yaml.load(text, loader)  # noqa: S506 - every Loader here is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{label}:{mark.line + 1}" if mark else label
        raise UsageError(f"{where}: this is no valid YAML ({error.problem}); correct the line.") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{label}: this is no valid YAML ({' '.join(str(error).split())}); correct it.") from None
    except RecursionError:
        raise UsageError(f"{label}: values are nested too deeply; write plain values.") from None


def read_yaml(path: Path, loader: type[Loader] = Loader) -> Any:
    """The file as data; UsageError as of `read_text` and `load_yaml`."""
    return load_yaml(read_text(path), str(path), loader, max_aliases=200)
