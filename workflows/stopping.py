"""Stopping: a cancellation is heard between steps, too, and what runs side by side ends together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

T = TypeVar("T")


def stopped() -> bool:
    """Whether the run, or this task of it alone, was asked to end.

    A step that ends well just when it is to be cancelled returns its result, and the request, which comes only once,
    would be lost with it: a slot that came free then would start an agent that nobody stops.
    """
    task = asyncio.current_task()
    return workflow.cancellation_reason() is not None or (task is not None and task.cancelling() > 0)


def ended_by_request(error: BaseException) -> bool:
    """Whether a step ended because the run, or this task of it, was asked to end.

    What fails while it is asked to, is not told from what fails because of that: a call that is cut off in the middle
    has errors of its own.
    """
    return stopped() or is_cancelled_exception(error)


def raise_if_cancelled() -> None:
    """End here when the run was asked to end; call it before each step, so that what the last one brought is kept."""
    if stopped():
        raise asyncio.CancelledError


async def pause(seconds: float, why: str) -> None:
    """Wait by a durable timer, unless the run was asked to end: nothing else would end the waiting then."""
    raise_if_cancelled()
    await workflow.sleep(max(0.0, seconds), summary=why[:200])


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Run all of it side by side, and return what each brought once all of it has ended.

    The first failure, and a cancellation, cancel what still runs; it is raised when nothing does any more. `gather`
    raises at once instead: the run would end while parts of it go on, and leave what they hold behind. `TaskGroup`
    cancels in the order of a set, which a replay does not repeat: its commands would not be those of the history.
    """
    ended: list[asyncio.Task[T]] = []
    tasks = [asyncio.create_task(each) for each in work]
    for task in tasks:
        task.add_done_callback(ended.append)
    with suppress(asyncio.CancelledError):  # raised below, once all has ended
        await workflow.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if rest := [task for task in tasks if not task.done()]:
        for task in rest:
            task.cancel()
        await to_its_end(workflow.wait(rest))
    failures = [error for task in ended if not task.cancelled() and (error := task.exception()) is not None]
    for error in failures:
        if not is_cancelled_exception(error):
            raise error
    raise_if_cancelled()
    if failures:
        raise asyncio.CancelledError
    return [task.result() for task in tasks]


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that no cancellation ends: clearing away. One that came meanwhile is left to whoever asks for it."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
