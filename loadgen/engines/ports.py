"""TCP ports of this machine: a free one, and who holds one."""

import contextlib
import socket
from pathlib import Path

HOST = "127.0.0.1"


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """True if a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: a port whose last connections are still in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def port_holder(port: int) -> str:
    """Who listens on the port: `python3 (pid 4711)`; `another process` if this cannot be found out (another user's)."""
    inodes = _listening_inodes(port)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                if descriptor.readlink().name in inodes:
                    name = (process / "comm").read_text(encoding="utf-8").strip()
                    return f"{name} (pid {process.name})"
    return "another process"


def _listening_inodes(port: int) -> set[str]:
    """The sockets in state LISTEN on this port, as `/proc/PID/fd` names them."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found
