"""Stands in for `loadgen sweep --resume RUN --runs RUNS --json`: holds the lock, tells progress, ends when told to.

It ends as completed when `go` lies in the run's folder, as interrupted at SIGINT, with a sentence if `fail` lies there,
and not at all at SIGINT if `deaf` does.
"""

import json
import signal
import sys
import time
from pathlib import Path

from loadgen.store.folder import RunFolder
from loadgen.store.lock import FolderLock


def main() -> int:
    folder = RunFolder(Path(sys.argv[sys.argv.index("--resume") + 1]))
    if (folder.path / "fail").exists():
        sys.stderr.write("loadgen: The fake sweep was told to fail; remove the file.\n")
        return 2
    stops: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: stops.append(number))
    with FolderLock(folder.path):
        folder.append_event("started", "measuring begins")
        sys.stderr.write(json.dumps({"event": "sweep_started", "estimate_s": 12.0}) + "\n")
        sys.stderr.flush()
        while not (folder.path / "go").exists():
            if stops and not (folder.path / "deaf").exists():
                folder.append_event("interrupted", "interrupted")
                return 130
            time.sleep(0.02)
        folder.append_event("completed", "all cells measured")
    return 0


sys.exit(main())
