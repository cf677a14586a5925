"""loadgen under Locust: each user is one request in flight; a child process of each worker sends them with our client.

Started by `make locust-up` (or `loadgen locust`). On another machine, with this repository and `make locust`:
`.venv/bin/locust -f locustfile.py --worker --master-host HOST --master-port PORT`.
"""

import os
import threading
from pathlib import Path
from typing import Any

import gevent
from locust import LoadTestShape, User, events, task
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from loadgen.commands.locust_job import (
    FOLDER_VARIABLE,
    CellOrder,
    NodeState,
    pack,
    read_job,
    unpack_order,
    unpack_state,
)
from loadgen.commands.locust_node import LocustNode
from loadgen.commands.locust_walk import LocustWalk

ORDER, SAY, STATE = "loadgen-order", "loadgen-say", "loadgen-state"
LONG_S = 3600.0


class Here:
    """What this process is: a worker, the master, or both."""

    node: LocustNode | None = None
    walk: LocustWalk | None = None


class Streams(User):
    """Holds one request in flight by being counted; it sends nothing itself."""

    def on_start(self) -> None:
        """One more request in flight."""
        if Here.node is not None:
            Here.node.user_started()

    def on_stop(self) -> None:
        """One less."""
        if Here.node is not None:
            Here.node.user_stopped()

    @task
    def live(self) -> None:
        """Until it is stopped."""
        gevent.sleep(LONG_S)


class Levels(LoadTestShape):
    """Walks the levels of the run."""

    def tick(self) -> tuple[int, float] | None:
        """(users, users started per second); None when all cells are walked."""
        level = Here.walk.level if Here.walk is not None else None
        return None if level is None else (level, max(10.0, float(level)))


def on_init(environment: Environment, **_: Any) -> None:
    """Joins the two sides to Locust's messages."""
    runner = environment.runner
    if runner is None:
        return
    if not isinstance(runner, MasterRunner):
        _make_node(environment)
    if not isinstance(runner, WorkerRunner):
        _make_walk(environment)


def _make_node(environment: Any) -> None:
    runner: Any = environment.runner

    def tell(state: NodeState) -> None:
        runner.send_message(STATE, {"state": pack(state)})

    def fire(kind: str, name: str, milliseconds: float, tokens: int, failure: Exception | None) -> None:
        environment.events.request.fire(
            request_type=kind,
            name=name,
            response_time=milliseconds,
            response_length=tokens,
            exception=failure,
            context={},
        )

    node = Here.node = LocustNode(tell, fire)

    def on_order(msg: Any, **_: Any) -> None:
        node.prepare(unpack_order(msg.data["order"]))

    def on_say(msg: Any, **_: Any) -> None:
        word = msg.data["word"]
        if word == "stop":
            node.stop()
        else:
            node.window(opens=word == "open")

    runner.register_message(ORDER, on_order)
    runner.register_message(SAY, on_say)
    environment.events.quit.add_listener(lambda **_: node.close())


def _make_walk(environment: Any) -> None:
    runner: Any = environment.runner
    folder = Path(os.environ[FOLDER_VARIABLE])

    def order(cell: CellOrder) -> None:
        clients: list[Any] = [None]
        if isinstance(runner, MasterRunner):
            nodes = runner.clients
            clients = sorted(node.id for node in (*nodes.ready, *nodes.spawning, *nodes.running))
        runner.send_message(ORDER, {"order": pack(cell)}, client_id=clients[cell.place[0]])

    walk = Here.walk = LocustWalk(
        read_job(folder), folder, order, lambda word: runner.send_message(SAY, {"word": word})
    )
    runner.register_message(STATE, lambda msg, **_: walk.take(unpack_state(msg.data["state"])))
    # the walk starts once: the web interface's button cannot start it a second time
    begun = threading.Event()

    def begin(**_: Any) -> None:
        if not begun.is_set():
            begun.set()
            threading.Thread(target=walk.run, daemon=True).start()

    environment.events.test_start.add_listener(begin)


hooks: Any = events
hooks.init.add_listener(on_init)
