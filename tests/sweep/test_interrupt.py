import asyncio

import pytest

from loadgen.sweep.interrupt import InterruptedRunError, unless_cancelled


async def test_the_result_comes_back() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await unless_cancelled(asyncio.Event(), work()) == 7


async def test_an_error_of_the_work_comes_through() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await unless_cancelled(asyncio.Event(), work())


async def test_cancel_waits_until_the_work_has_cleaned_up() -> None:
    cancel, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    asyncio.get_running_loop().call_soon(cancel.set)
    with pytest.raises(InterruptedRunError):
        await unless_cancelled(cancel, work())
    assert cleaned.is_set()
