"""`make down`: nothing of the stack is left: no container, no network, no volume. Caches and runs/ are the user's."""

import subprocess
import sys

from loadgen.engines.docker_compose import find_compose
from loadgen.errors import LoadgenError


def main() -> int:
    """The exit status of Compose."""
    try:
        compose = find_compose()
    except LoadgenError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return int(error.exit_code)
    files = [word for file in compose.files for word in ("-f", str(file))]
    # Every Compose profile: what `up` started need not be known.
    words = [*compose.command, "--project-directory", str(compose.folder), *files, "--profile", "*"]
    return subprocess.run([*words, "down", "--remove-orphans", "--volumes"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
