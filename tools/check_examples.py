"""Recomputes the examples from their cells and compares: summaries, verifications, and the figures in docs/results.md.

`--write` puts the recomputed table into docs/results.md and the recomputed verification into verify/; `loadgen report
FOLDER` renews an example's own files after that.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.analysis.model import Estimate, Findings
from loadgen.analysis.verify_model import Claim, Verification
from loadgen.commands.conclude import VERIFICATION, VERIFY, find_findings, find_verification
from loadgen.commands.verify_run import conclude
from loadgen.report.summary import dumps, plain, summary
from loadgen.store.codec import builtins, convert, encode
from loadgen.store.folder import RunFolder, write_whole

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- (table|figures): (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
RATIO = re.compile(r"\d+\.\d\d×(?: \([^)]*\))?")
TOLERANCE = 1e-9


def difference(expected: Any, found: Any, place: str = "") -> str | None:
    """Where two JSON values differ first, numbers by more than rounding; None if nowhere."""
    numbers = (int, float)
    if isinstance(expected, numbers) and isinstance(found, numbers) and not isinstance(expected, bool):
        near = abs(expected - found) <= TOLERANCE * max(1.0, abs(expected), abs(found))
        return None if near else f"{place}: {found} stands there, {expected} follows from the cells"
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        pairs = [(expected[key], found[key], f"{place}.{key}") for key in expected]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [
            (one, other, f"{place}[{index}]") for index, (one, other) in enumerate(zip(expected, found, strict=True))
        ]
    else:
        same = expected == found
        return None if same else f"{place}: {str(found)[:80]!r} stands there, {str(expected)[:80]!r} follows"
    return next((told for one, other, where in pairs if (told := difference(one, other, where))), None)


def example_faults(folder: RunFolder) -> Iterator[str]:
    """One sentence for each file of the example that does not follow from its cells."""
    made = json.loads(dumps(summary(find_findings(folder), folder.manifest())))
    found = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    # A note names the command that goes on with the run, by the path that the command was given.
    for one in (made, found):
        one["notes"] = [re.sub(r"(--resume |loadgen verify )\S+", r"\1RUN", note) for note in one["notes"]]
    if told := difference(made, found):
        yield f"summary.json{told}"
    stored = find_verification(folder)
    if stored is None:
        return
    fresh = plain(builtins(_verified(RunFolder(folder.path / VERIFY), stored)))
    if told := difference(fresh | {"created_at": stored.created_at}, plain(builtins(stored))):
        yield f"{VERIFY}/{VERIFICATION}{told}"


def _verified(own: RunFolder, stored: Verification) -> Verification:
    manifest = own.manifest()
    claim = convert(manifest.settings["claim"], Claim)
    margin: float = manifest.settings["margin"]
    return conclude(own, claim, margin, stored.margin_reason)


def ratio(estimate: Estimate | None, n: int) -> str:
    """`1.41× (1.34–1.48, n = 3)`; without an interval below three pairs; `void` without a pair."""
    if estimate is None or n == 0:
        return "void"
    if estimate.ci95 is None:
        return f"{estimate.value:.2f}× (n = {n})"
    return f"{estimate.value:.2f}× ({estimate.ci95[0]:.2f}–{estimate.ci95[1]:.2f}, n = {n})"


def table(findings: Findings) -> str:
    """The levels of every profile, as Markdown: throughput and TPOT, each with its 95 % interval and n."""
    lines = ["| in flight | profile | tokens/s | TPOT |", "| --: | :-- | :-- | :-- |"]
    for condition in findings.conditions:
        for profile in condition.profiles:
            lines += [
                f"| {level.concurrency} | {profile.profile} | {ratio(level.speedup, level.n)} | "
                f"{ratio(level.tpot_speedup, level.n)} |"
                for level in profile.levels
            ]
    return "\n".join(lines) + "\n"


def figures(folder: RunFolder) -> set[str]:
    """Every ratio that a text may quote of the example, as it must be written."""
    known = set(re.findall(RATIO, table(find_findings(folder))))
    verification = find_verification(folder)
    for one in verification.comparisons if verification else ():
        interval = f"90 %: {one.ci90[0]:.2f}–{one.ci90[1]:.2f}, " if one.ci90 else ""
        known.add(f"{one.ratio:.2f}× ({interval}n = {one.n})")
    return known


def quoted_faults(text: str) -> Iterator[str]:
    """One sentence for each figure of the text that is none of its example's, and for a text that has no block."""
    blocks = list(BLOCK.finditer(text))
    if not blocks:
        yield "no figure is marked; put <!-- figures: FOLDER --> and <!-- end --> around what was measured"
    for block in blocks:
        _, kind, place, body, _ = block.groups()
        folder = RunFolder(ROOT / place)
        if kind == "table":
            if body != table(find_findings(folder)):
                yield f"the table of {place} is not what follows from its cells; run this with --write"
            continue
        known = figures(folder)
        yield from (f"{one!r} is no figure of {place}" for one in RATIO.findall(body) if one not in known)


def main(arguments: list[str]) -> int:
    """0 if everything follows from the cells, else 1."""
    results = ROOT / "docs" / "results.md"
    text = results.read_text(encoding="utf-8")
    folders = [path.parent for path in sorted((ROOT / "examples").rglob("manifest.json")) if path.parent.name != VERIFY]
    if "--write" in arguments:
        for path in folders:
            _renew_verification(RunFolder(path))
        text = BLOCK.sub(_renewed, text)
        results.write_text(text, encoding="utf-8")
    sentences = [f"{path.relative_to(ROOT)}: {told}" for path in folders for told in example_faults(RunFolder(path))]
    sentences += [f"docs/results.md: {told}" for told in quoted_faults(text)]
    if not folders:
        sentences.append("examples/ holds no run")
    for sentence in sentences:
        print(sentence)
    return 1 if sentences else 0


def _renew_verification(folder: RunFolder) -> None:
    stored = find_verification(folder)
    if stored is not None:
        fresh = replace(_verified(RunFolder(folder.path / VERIFY), stored), created_at=stored.created_at)
        write_whole(folder.path / VERIFY / VERIFICATION, encode(fresh) + b"\n")


def _renewed(block: re.Match[str]) -> str:
    head, kind, place, body, end = block.groups()
    return head + (table(find_findings(RunFolder(ROOT / place))) if kind == "table" else body) + end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
