"""Checks that a room imports only from rooms above it in the design's list; prints each breach and exits 1."""

import ast
import sys
from pathlib import Path

ROOMS = (
    "profiles",
    "engines",
    "workloads",
    "load",
    "metrics",
    "store",
    "analysis",
    "sweep",
    "report",
    "simulator",
    "commands",
    "service",
)
# Beside the rooms: facts about the house that any room may use.
FREE = {"errors", "clock", "__version__"}


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """(line, dotted module) of every import in the file, local ones included."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                found.append((node.lineno, f"relative import in {path.name}"))
            elif node.module == "loadgen":
                found += [(node.lineno, f"loadgen.{alias.name}") for alias in node.names]
            elif node.module:
                found.append((node.lineno, node.module))
    return found


def breaches(package: Path) -> list[str]:
    """One sentence per import that goes down the list of rooms, or that is relative."""
    out: list[str] = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        if len(parts) == 1:
            continue  # cli.py and the free modules join everything
        room = parts[0]
        if room not in ROOMS:
            out.append(f"{path}: {room}/ is no room of the design; put the file into one of {', '.join(ROOMS)}")
            continue
        for line, module in imported_modules(path):
            names = module.split(".")
            if module.startswith("relative"):
                out.append(f"{path}:{line}: {module}; write the full name")
            if names[0] != "loadgen" or len(names) < 2 or names[1] in FREE:
                continue
            other = names[1]
            if other not in ROOMS:
                out.append(f"{path}:{line}: imports {module}, which is no room")
            elif ROOMS.index(other) > ROOMS.index(room):
                out.append(f"{path}:{line}: {room}/ imports {other}/, which comes after it in the design")
    return out


def main() -> int:
    """0 if every import goes up the list, else 1."""
    found = breaches(Path(__file__).resolve().parents[1] / "loadgen")
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
