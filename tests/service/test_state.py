"""The state of a run is read from its folder alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.service.state import RunState, collide, last_words, resources, standing, sweep_pid
from loadgen.store.folder import RunFolder

MakeRun = Callable[..., RunFolder]


@pytest.mark.parametrize(
    ("events", "state", "asked_here"),
    [
        ((), RunState.INTERRUPTED, False),
        (("queued",), RunState.QUEUED, True),
        (("queued", "started"), RunState.INTERRUPTED, True),
        (("started", "completed"), RunState.COMPLETED, False),
        (("queued", "started", "interrupted", "cancelled"), RunState.CANCELLED, True),
        (("queued", "started", "interrupted", "cancelled", "queued"), RunState.QUEUED, True),
        (("started", "server", "tokens", "interrupted"), RunState.INTERRUPTED, False),
    ],
)
def test_the_last_event_of_a_state_holds(
    make_run: MakeRun, events: tuple[str, ...], state: RunState, asked_here: bool
) -> None:
    found = standing(make_run(events))
    assert (found.state, found.asked_here) == (state, asked_here)


def test_a_torn_or_foreign_event_hides_none_before_it(make_run: MakeRun) -> None:
    run = make_run(("queued",))
    with (run.path / "events.jsonl").open("ab") as file:
        file.write(b'{"at": 1}\n{"at"')
    assert standing(run).state is RunState.QUEUED


@pytest.mark.parametrize(
    "text",
    ["", "process x", f"process {os.getpid()}", "process 1", "somebody", "process 99999999"],
    # A name of its own: test workers must agree on names, and each has another process id.
    ids=["empty", "no number", "this process", "init", "no process", "too large"],
)
def test_a_lock_without_a_living_sweep_is_no_sweep(tmp_path: Path, text: str) -> None:
    # This very process lives, but it is no `loadgen sweep`.
    (tmp_path / "lock").write_text(text, encoding="utf-8")
    assert sweep_pid(tmp_path) is None


def test_runs_take_their_gpus_servers_or_the_machine() -> None:
    def gpu(number: str) -> frozenset[str]:
        return resources({"request": {"server_env": [f"CUDA_VISIBLE_DEVICES={number}"]}}, "process")

    every = resources({"request": {"server_env": []}}, "docker")
    machine = resources({}, "simulator")
    urls = resources({"engine": {"url": "baseline=http://a:1,ngram=http://b:2"}}, "url")
    assert collide(machine, machine)
    assert collide(gpu("0"), gpu("0,1"))
    assert collide(every, gpu("3"))
    assert collide(every, every)
    assert collide(urls, resources({"engine": {"url": "http://b:2"}}, "url"))
    assert not collide(gpu("0"), gpu("1"))
    assert not collide(machine, every)
    assert not collide(machine, urls)
    assert not collide(urls, gpu("0"))


def test_the_last_words_are_the_sentence_among_the_progress(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert last_words(path) == ""
    path.write_text('{"event": "notice"}\nloadgen: No GPU; plug one in.\n{"event": "server"}\n', encoding="utf-8")
    assert last_words(path) == "No GPU; plug one in."
