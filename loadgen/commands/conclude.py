"""From a run folder to its answer: analyse, write, show. Every command that ends with an answer ends here."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from loadgen.analysis.by_prompt import by_prompt, prompt_notes
from loadgen.analysis.check_context import warn
from loadgen.analysis.diagnostic import diagnose
from loadgen.analysis.findings import analyse
from loadgen.analysis.model import BreakEvenStatus, Check, Findings
from loadgen.analysis.verify_attach import with_verification
from loadgen.analysis.verify_model import Verification
from loadgen.commands.extend import looks_note, most_repeats, next_command
from loadgen.commands.goal import judged
from loadgen.commands.prompt_times import prompt_times
from loadgen.commands.resume import resume_words
from loadgen.errors import ExitCode, UsageError
from loadgen.report.write import write_reports
from loadgen.store.codec import decode
from loadgen.store.diagnostic import diagnostics
from loadgen.store.folder import RunFolder, StoredEvent
from loadgen.store.jsonl import DamagedLineError
from loadgen.store.model import CellKey, CellResult, Manifest

SHOWN_FAILURES = 3
NEXT = "to measure next: "
"""Begins the note with the command that would."""
BEGUN = ("a verification was begun", "a newer verification was begun")
VERIFY, VERIFICATION = "verify", "verification.json"
STATES = ("started", "interrupted", "completed")
"""Kinds of event that tell a run's state; the last one holds."""


def find_findings(folder: RunFolder) -> Findings:
    """What the run's cells say. A run that was begun and never completed, killed ones too, is interrupted."""
    events = tuple(folder.events())
    interrupted = was_interrupted(events)
    manifest = folder.manifest()
    slo = judged(folder, manifest)
    cells = folder.cells()
    failed = failed_keys(manifest, events, cells)
    findings = analyse(manifest, cells, folder.servers(), interrupted=interrupted, slo=slo, failed=failed)
    # An imported run says in its manifest what cannot be known from it.
    unknown = manifest.settings.get("unknown", ())
    notes = (*findings.notes, *unknown, *_prompt_notes(folder), *looks_note(manifest))
    findings = replace(findings, notes=notes)
    if following := next_command(folder, findings):
        findings = replace(findings, notes=(*findings.notes, f"{NEXT}{following}"))
    findings = replace(findings, checks=(*findings.checks, *failed_cells(events, folder.cells())))
    findings = replace(findings, diagnostics=diagnose(diagnostics(folder.path), folder.cells()))
    verification = find_verification(folder)
    findings = replace(findings, notes=(*findings.notes, *_begun(folder, again=verification is not None)))
    return findings if verification is None else with_verification(findings, verification)


def was_interrupted(events: Iterable[StoredEvent]) -> bool:
    """True for a run that was begun and never completed, killed ones too."""
    states = [event.kind for event in events if event.kind in STATES]
    return bool(states) and states[-1] != "completed"


def _begun(folder: RunFolder, *, again: bool) -> tuple[str, ...]:
    """A note where the newest verification was begun and is not whole; `again`: an older one is."""
    own = RunFolder(folder.path / VERIFY)
    if (own.path / VERIFICATION).is_file() or not (own.path / "manifest.json").is_file():
        return ()
    plan = own.manifest()
    total = len(plan.profiles) * len(plan.conditions) * len(plan.levels) * plan.repeats * plan.sessions
    have = f"{len(own.cells())} of {total} cells"
    which = BEGUN[again]
    so_far = "; the verdict told is the last complete one's" if again else ""
    goes_on = f"{resume_words(folder, 'verify')} goes on"
    return (f"{which} and is not complete ({have}): {goes_on}{so_far}",)


def failed_keys(manifest: Manifest, events: Sequence[StoredEvent], cells: Sequence[CellResult]) -> tuple[CellKey, ...]:
    """The planned cells that failed and were not measured since."""
    measured = {cell.key for cell in cells}
    failed = {str(event.details.get("cell")) for event in events if event.kind == "cell-failed"}
    if not failed:
        return ()
    planned = itertools.starmap(
        CellKey,
        itertools.product(
            manifest.profiles,
            manifest.conditions,
            manifest.levels,
            range(most_repeats(manifest)),
            range(manifest.sessions),
        ),
    )
    return tuple(key for key in planned if str(key) in failed and key not in measured)


def failed_cells(events: Sequence[StoredEvent], cells: Sequence[CellResult]) -> tuple[Check, ...]:
    """One check for the cells that failed and were not measured since, with the first reasons; none if all stand."""
    measured = {str(cell.key) for cell in cells}
    failed = {str(event.details.get("cell")): event.text for event in events if event.kind == "cell-failed"}
    missing = {key: reason for key, reason in failed.items() if key not in measured}
    if not missing:
        return ()
    shown = "; ".join(f"{key}: {reason.rstrip('.')}" for key, reason in list(missing.items())[:SHOWN_FAILURES])
    more = f"; and {len(missing) - SHOWN_FAILURES} more" if len(missing) > SHOWN_FAILURES else ""
    count = "1 cell" if len(missing) == 1 else f"{len(missing)} cells"
    cause = f"{count} failed, so that the answer lacks them: {shown}{more}"
    return (warn("cells-failed", cause, "read the servers' logs; --resume measures what is missing"),)


def _prompt_notes(folder: RunFolder) -> tuple[str, ...]:
    try:
        return prompt_notes(by_prompt(prompt_times(folder), folder.manifest().against))
    except DamagedLineError as error:
        # The verdict rests on the cells.
        return (f"pairs by prompt are left out: {str(error).rstrip('.')}",)


def find_verification(folder: RunFolder) -> Verification | None:
    """What the last complete `loadgen verify` found of this run; None if there is none.

    A verification that was begun since and is not complete does not hide it (see `_begun`).
    """
    found = [path for path in _verifications(folder) if (path / VERIFICATION).is_file()]
    if not found:
        return None
    path = found[0] / VERIFICATION
    try:
        return decode(path.read_bytes(), Verification)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read ({error}); remove it and run loadgen verify again.") from error


def _verifications(folder: RunFolder) -> list[Path]:
    """The verifications' folders, the newest first: `verify`, then those that moved aside for it."""

    def number(path: Path) -> int:
        return int(path.name.rpartition("-")[2])

    aside = [path for path in folder.path.glob(f"{VERIFY}-*") if path.name.removeprefix(f"{VERIFY}-").isdecimal()]
    return [folder.path / VERIFY, *sorted(aside, key=number, reverse=True)]


def write(folder: RunFolder, findings: Findings) -> dict[str, Path]:
    """The report files' paths by name, written."""
    return write_reports(folder.path, findings, folder.manifest(), folder.cells(), folder.servers())


def show(folder: RunFolder, findings: Findings, *, as_json: bool = False) -> None:
    """Prints the table, the answer and the report's path; or the summary as JSON."""
    from rich.console import Console

    from loadgen.report.summary import dumps, summary
    from loadgen.report.terminal import print_findings

    if as_json:
        print_json(dumps(summary(findings, folder.manifest())))
        return
    report = folder.path / "report.html"
    console = Console()
    print_findings(console, findings, folder.manifest(), report if report.exists() else None)
    for note in findings.notes:
        if note.startswith((NEXT, *BEGUN)):
            # Not wrapped: the command in it is there to be copied.
            console.print(note[:1].upper() + note[1:], highlight=False, markup=False, soft_wrap=True)


def print_json(text: str) -> None:
    """Writes the text to standard output as it is: no wrapping, no colours."""
    import sys

    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def answer_code(findings: Findings) -> ExitCode:
    """0 if any profile got a verdict, 130 if the run was interrupted, else 3."""
    if findings.interrupted:
        return ExitCode.INTERRUPTED
    for condition in findings.conditions:
        for profile in condition.profiles:
            if any(b.status is not BreakEvenStatus.INCONCLUSIVE for b in profile.break_even.values()):
                return ExitCode.ANSWER
    return ExitCode.NO_VERDICT
