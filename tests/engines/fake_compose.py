"""Stands in for docker-compose in test_docker.py: `up` runs fake_server.py, and every call is written down."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

VERBS = ("version", "config", "up", "down", "pull")


def main() -> int:
    folder = Path(os.environ["FAKE_FOLDER"])
    verb = next(word for word in sys.argv[1:] if word in VERBS)
    with (folder / "journal").open("a", encoding="utf-8") as journal:
        journal.write(f"{verb}\n")
    if verb == "config":
        service = json.loads((folder / "service.json").read_text(encoding="utf-8"))
        sys.stdout.write(json.dumps({"services": {"vllm": service}}))
    if verb == "up":
        (folder / "environment.json").write_text(json.dumps(dict(os.environ)), encoding="utf-8")
        return up(folder)
    return 0


def up(folder: Path) -> int:
    arguments = json.loads((folder / "server.json").read_text(encoding="utf-8"))
    server = Path(__file__).with_name("fake_server.py")
    child = subprocess.Popen([sys.executable, str(server), "--port", os.environ["VLLM_PORT"], *arguments])
    (folder / "pid").write_text(str(child.pid), encoding="utf-8")

    def stop(number: int, frame: object) -> None:
        del frame
        with (folder / "journal").open("a", encoding="utf-8") as journal:
            journal.write(f"{signal.Signals(number).name}\n")
        child.terminate()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return abs(child.wait())


if __name__ == "__main__":
    sys.exit(main())
