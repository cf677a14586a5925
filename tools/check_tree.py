"""Checks the tracked tree: small, short files, no machine's path, no registry, no secret; exits 1 if it is not so."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_TREE_BYTES = 12 * 2**20
MAX_LINES = 400
VENDORED = ("loadgen/report/assets/", "tests/data/")
# Written in pieces, so that this file does not find itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:" + "wo" + r"rk|ho" + r"me/\w+|opt/" + r"wheels)/"),
    "a package registry's host": re.compile("files" + r"\.pythonhosted|pypi" + r"\.org/simple|registry" + r"\.npmjs"),
    "a token": re.compile(r"\b(?:hf" + r"_[A-Za-z0-9]{30,}|sk" + r"-[A-Za-z0-9]{32,}|gh" + r"p_[A-Za-z0-9]{30,})"),
    "a private key": re.compile("BEGIN [A-Z ]*PRIVATE" + " KEY"),
}


def tracked() -> list[str]:
    """The tracked files, as paths below the root."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [name for name in listing.decode().split("\0") if name and (ROOT / name).is_file()]


def faults(names: list[str]) -> list[str]:
    """One sentence per fault."""
    found: list[str] = []
    size = sum((ROOT / name).stat().st_size for name in names)
    if size > MAX_TREE_BYTES:
        found.append(f"the tracked tree is {size / 2**20:.1f} MiB; it travels whole, keep it under 12 MiB")
    for name in names:
        if name.startswith(VENDORED):
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if name.endswith(".py") and text.count("\n") > MAX_LINES:
            found.append(f"{name}: {text.count(chr(10))} lines; a file says one thing in about {MAX_LINES}")
        for number, line in enumerate(text.split("\n"), 1):
            found += [f"{name}:{number}: holds {what}" for what, pattern in FORBIDDEN.items() if pattern.search(line)]
    return found


def main() -> int:
    """0 if the tree is clean, else 1."""
    sentences = faults(tracked())
    for sentence in sentences:
        print(sentence)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
