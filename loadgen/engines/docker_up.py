"""One Compose project from `up` to `down`, as a process of its own: whatever ends it, the project goes down.

Started under guard.py as `python -I -S docker_up.py SERVICE COMPOSE...`, so it imports nothing of loadgen; COMPOSE is
the command with its files and its project. The service's output comes out on stdout; the exit code is the service's.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

DOWN_TRIES = 3


class Project:
    """Runs `up` and passes signals on to it."""

    def __init__(self, service: str, compose: Sequence[str]) -> None:
        self.service = service
        self.compose = list(compose)
        self.stopping = False
        self.child: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.pass_on)

    def pass_on(self, number: int, frame: object) -> None:
        """Compose stops its containers at the first signal and kills them at the second."""
        del frame
        self.stopping = True
        if self.child is not None:
            self.tell(self.child, number)

    @staticmethod
    def tell(child: subprocess.Popen[bytes], number: int) -> None:
        """The signal to Compose, and to the plugin where Compose is `docker compose`, as a terminal would do it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)

    def up(self) -> int:
        """The service's exit code, once it has ended."""
        if self.stopping:
            return 130
        command = [*self.compose, "up", "--no-color", "--no-log-prefix", "--exit-code-from", self.service, self.service]
        # A session of its own: the group's signals would reach Compose a second time, and the second one kills.
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        if self.stopping:
            # The signal came between the look above and the start.
            self.tell(self.child, signal.SIGINT)
        code = self.child.wait()
        self.child = None
        return code

    def down(self) -> None:
        """No container and no network of the project is left. The volumes of a service are the user's caches."""
        for _ in range(DOWN_TRIES):
            done = subprocess.run(
                [*self.compose, "down", "--remove-orphans", "--timeout", "10"],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )
            if done.returncode == 0:
                return


def main(arguments: Sequence[str]) -> int:
    """Runs one project."""
    project = Project(arguments[0], arguments[1:])
    try:
        return project.up()
    finally:
        project.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
