"""What every activity shares: heartbeats while it works, and one boundary that says which errors a retry may mend."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from ..workflows.errors import HostFaultError
from .git import GitError
from .jobs import end_job

P = ParamSpec("P")
T = TypeVar("T")

BEAT_S = 2.0
"""Seconds between heartbeats; the server calls a worker dead after 10 s of silence."""

PASSING = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC}
)
"""Errors of the system that may be over at the next try; a missing file is a bug."""

GIT_PATIENCE = 5
"""Attempts at a failing git step: a lock goes away, a broken object does not."""


def effect(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Make an activity of a coroutine function: it beats while it works; its errors are typed for retries."""

    @wraps(function)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        async with _heartbeats():
            try:
                return await function(*args, **kwargs)
            except Exception as error:
                if _may_pass(error):
                    raise
                raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error

    return activity.defn(guarded)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, GitError):
        return activity.info().attempt < GIT_PATIENCE
    return isinstance(error, HostFaultError) or (isinstance(error, OSError) and error.errno in PASSING)


async def in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run blocking work in a thread; a cancellation waits for it, so that no step goes on in the background."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        with suppress(Exception):
            await work
        raise


def kill_requested() -> bool:
    """Whether a cancellation asks for the end of the work; any other one (shutdown, lost heartbeat) only detaches.

    Outside of an activity it is somebody at a terminal who asks.
    """
    if not activity.in_activity():
        return True
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


@asynccontextmanager
async def ended_if_cancelled(job: Path) -> AsyncIterator[None]:
    """End the job in this folder when the work inside is cancelled for good; else it goes on and is found again."""
    try:
        yield
    except asyncio.CancelledError:
        if kill_requested():
            await in_thread(end_job, job)
        raise


@asynccontextmanager
async def _heartbeats() -> AsyncIterator[None]:
    beating = asyncio.create_task(_beat())
    try:
        yield
    finally:
        beating.cancel()


async def _beat() -> None:
    while True:
        await asyncio.sleep(BEAT_S)  # first: a short step ends without a call to the engine
        activity.heartbeat()
