"""The last complete verification stands until a newer one is complete."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.commands.conclude import find_findings, find_verification
from loadgen.store.folder import RunFolder


def test_a_newer_one_that_was_only_begun_does_not_hide_it(
    in_process: Any, answered_run: Callable[..., RunFolder], tmp_path: Path
) -> None:
    folder = answered_run(tmp_path)
    own = folder.path / "verify"
    complete = find_verification(folder)
    assert complete is not None

    # What `verify` does when it starts again: the last one moves aside, the manifest is written first. With ten of
    # them the numbers' order is not that of their names.
    (folder.path / "verify-9").mkdir()
    (folder.path / "verify-9" / "verification.json").write_text("not read: an older one stands behind a newer one")
    own.rename(folder.path / "verify-10")
    own.mkdir()
    (own / "manifest.json").write_bytes((folder.path / "verify-10" / "manifest.json").read_bytes())

    assert find_verification(folder) == complete
    findings = find_findings(folder)
    begun = [note for note in findings.notes if "was begun" in note]
    assert len(begun) == 1
    assert begun[0].startswith("a newer verification was begun and is not complete (0 of ")
    assert "the verdict told is the last complete one's" in begun[0]

    (own / "verification.json").write_bytes((folder.path / "verify-10" / "verification.json").read_bytes())
    assert not [note for note in find_findings(folder).notes if "was begun" in note]
