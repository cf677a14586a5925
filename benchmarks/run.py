"""Measures streaming clients side by side against a server whose send times are known.

python -m benchmarks.run                     every client, every scenario, 3 alternating rounds (about 40 minutes)
python -m benchmarks.run --final             the published measurement: 3 rounds of ours and the reference, 1 of the
                                             others, and 10 million events for memory (under 15 minutes)
python -m benchmarks.run --quick             ours and the reference, a few seconds
python -m benchmarks.run --clients reference,loadgen --scenarios paced-32 --rounds 5
python -m benchmarks.run --scenarios memory --clients loadgen --rounds 1      10 million events
"""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.clients.base import CACHE, Client
from benchmarks.clients.registry import BY_NAME, CLIENTS, install
from benchmarks.figures import BrokenRunError
from benchmarks.goals import COMMAND, LOOP, REFERENCE
from benchmarks.mock import build
from benchmarks.one_run import Bench, measure
from benchmarks.result import Result
from benchmarks.scenarios import BY_NAME as SCENARIOS
from benchmarks.scenarios import FULL, MEMORY, QUICK, Scenario

QUICK_CLIENTS = (REFERENCE, LOOP)
OWN = (REFERENCE, LOOP, COMMAND)


def main() -> None:
    """Runs what was asked, prints the tables and writes the JSON."""
    args = _arguments()
    scenarios = [QUICK] if args.quick else [SCENARIOS[name] for name in args.scenarios]
    if args.final:
        scenarios = [*FULL, MEMORY]
    names = list(QUICK_CLIENTS) if args.quick and args.clients is None else args.clients or list(BY_NAME)
    rounds = 1 if args.quick else args.rounds
    started = datetime.now(UTC)
    # run folders hold logs for a look; only the results are kept over runs
    folder = CACHE / "runs" / started.strftime("%Y-%m-%dT%H-%M-%SZ")
    folder.mkdir(parents=True)
    failed = install(folder) if args.install and not args.quick else {}
    missing = {name: reason for name in names if (reason := failed.get(name) or BY_NAME[name].missing())}
    clients = [client for client in CLIENTS if client.name in names and client.name not in missing]
    runs = folder / "runs"
    runs.mkdir()
    bench = Bench(build(CACHE), runs, *_cores(), args.timeout)
    result = Result(
        date=started.isoformat(timespec="seconds"),
        machine=_machine(),
        server_core=bench.server_core,
        client_core=bench.client_core,
        versions={client.name: client.version() for client in clients},
        whats={client.name: client.what for client in clients},
        missing=missing,
        scenarios=scenarios,
        runs={
            one.name: {client.name: [None] * rounds for client in clients if takes_part(client.name, one, 0)}
            for one in scenarios
        },
    )
    out = args.out or CACHE / "results" / f"{started.strftime('%Y-%m-%dT%H-%M-%SZ')}.json"
    peer_rounds = 1 if args.final else rounds
    _rounds(bench, clients, (rounds, peer_rounds), result, out)
    print(result.text())
    print(f"\nwritten: {out}")
    if not args.keep and not result.faults:
        shutil.rmtree(folder)
    sys.exit(1 if result.faults else 0)


def takes_part(client: str, scenario: Scenario, number: int, peer_rounds: int = 1) -> bool:
    """True if a client runs in this round of this scenario: 10 million events are ours alone, and once."""
    if scenario.name == MEMORY.name:
        return client == LOOP and number == 0
    return client in OWN or number < peer_rounds


def _rounds(bench: Bench, clients: list[Client], counts: tuple[int, int], result: Result, out: Path) -> None:
    """A B C, then C B A, and so on: what drifts in the machine hits every client alike. The file is written after each
    round, so that an interrupted run keeps what it has.
    """
    rounds, peer_rounds = counts
    for number in range(rounds):
        for scenario in result.scenarios:
            for client in clients if number % 2 == 0 else reversed(clients):
                if not takes_part(client.name, scenario, number, peer_rounds):
                    continue
                print(f"round {number + 1}/{rounds} {scenario.name} {client.name} ...", file=sys.stderr, flush=True)
                try:
                    result.runs[scenario.name][client.name][number] = measure(bench, client, scenario)
                except BrokenRunError as error:
                    print(f"  failed: {error}", file=sys.stderr, flush=True)
                    result.faults.append(f"{client.name} in {scenario.name}, round {number + 1}: {error}")
        result.write(out)


def _cores() -> tuple[int | None, int | None]:
    """(server's, client's); None for both on a machine with one core, where nothing can be kept apart."""
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[1]) if len(cores) > 1 else (None, None)


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds; its figures mean nothing")
    parser.add_argument("--final", action="store_true", help="the published measurement, under 15 minutes")
    parser.add_argument("--clients", type=_names(list(BY_NAME)), help=f"of {', '.join(BY_NAME)}")
    parser.add_argument("--scenarios", type=_names(list(SCENARIOS)), default=[one.name for one in FULL])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one command may take")
    parser.add_argument("--install", action="store_true", help="install guidellm and aiperf if they are missing")
    parser.add_argument("--keep", action="store_true", help="keep the run folders with their logs")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    return parser.parse_args()


def _names(known: list[str]) -> Callable[[str], list[str]]:
    """A reader of comma-separated lists out of known names."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return names

    return read


if __name__ == "__main__":
    main()
