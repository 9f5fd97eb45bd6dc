"""Locks that live as long as a process: taken on a file, freed by the kernel however the process ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from ..workflows.errors import UnreachableError

PATIENCE_S = 240.0
"""How long a starter waits for another one: longer than any start takes."""


def take(path: Path) -> int | None:
    """Take the lock without waiting: its descriptor, or None while another process holds it.

    The lock is held until every copy of the descriptor is closed; a child that inherits it keeps it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


async def take_within(path: Path, seconds: float) -> int | None:
    """Take the lock as soon as it is free; None when it is not for this long."""
    until = time.monotonic() + seconds
    while True:
        descriptor = take(path)
        if descriptor is not None or time.monotonic() > until:
            return descriptor
        await asyncio.sleep(0.05)


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Hold the lock for a block; raises UnreachableError when another process does not let go of it."""
    descriptor = await take_within(path, PATIENCE_S)
    if descriptor is None:
        raise UnreachableError(
            f"process {holder(path) or 'unknown'} has been starting or stopping the engine for too long",
            hint="end that process and try again",
        )
    try:
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock."""
    descriptor = take(path)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def holder(path: Path) -> int | None:
    """The process that holds the lock, found by its open files; None when free or held by another user."""
    if is_free(path):
        return None
    wanted = str(path.resolve())
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(file.path == wanted for file in process.open_files()):
                return process.pid
    return None
