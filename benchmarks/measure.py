"""Runs a command on one core and writes what its whole process tree cost. Used as a script by `benchmarks.run`.

    python benchmarks/measure.py --core 1 --timeout 300 --out FILE -- COMMAND...

Orphans of the command are inherited and waited for (PR_SET_CHILD_SUBREAPER), so that no worker process escapes the sum.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ORPHANS_S = 5.0


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _wait_for_orphans(deadline_s: float) -> bool:
    """True once no child is left; False if some still run at the deadline."""
    while time.monotonic() < deadline_s:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            time.sleep(0.02)
    return False


def main() -> None:
    """See the module's text; exits with the command's code, 124 if it ran past its time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", type=int)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    began_s = time.monotonic()
    process = subprocess.Popen(args.command, stdin=subprocess.DEVNULL, start_new_session=True)

    def stop(*_: object) -> None:
        _end(process.pid)
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)
    try:
        code = process.wait(args.timeout)
        wall_s = time.monotonic() - began_s
        if not _wait_for_orphans(time.monotonic() + ORPHANS_S):
            _end(process.pid)
            _wait_for_orphans(time.monotonic() + 1.0)
    except subprocess.TimeoutExpired:
        code, wall_s = 124, args.timeout
        _end(process.pid)
        process.wait()
        _wait_for_orphans(time.monotonic() + ORPHANS_S)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {
        "code": code,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": wall_s,
        "peak_rss_mb": usage.ru_maxrss / 1024,
    }
    args.out.write_text(json.dumps(cost), encoding="utf-8")
    sys.exit(code if code >= 0 else 1)


if __name__ == "__main__":
    main()
