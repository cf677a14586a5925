"""Work spread over processes."""

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_TASKS: list[Callable[[], Any]] = []


def spread(tasks: Sequence[Callable[[], T]], jobs: int) -> list[T]:
    """What each task gives, in order. Forked workers see the tasks as they are: closures, which no pickle takes."""
    if jobs == 1:
        return [task() for task in tasks]
    _TASKS[:] = tasks
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        return pool.map(_carry_out, range(len(tasks)), chunksize=1)


def _carry_out(number: int) -> Any:
    return _TASKS[number]()
