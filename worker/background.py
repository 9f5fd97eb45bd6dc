"""What server and worker have in common as background processes: logs kept small, ends that are certain."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path

from ..activities import processes
from ..workflows.errors import UnreachableError
from . import locks
from .records import ProcessRecord

LOG_BYTES = 8 * 2**20
"""A log longer than this becomes `<name>.1`."""

KILL_S = 5.0
"""How long a killed process may take to vanish."""

PAUSE_S = 0.05


def rotate(log: Path) -> None:
    """Keep a log small, also while a process appends to it: copied away, then cut."""
    if log.is_file() and log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def spawn(command: processes.Command, *, log: Path, pass_fds: tuple[int, ...] = ()) -> int:
    """Start a background process and return its pid; raises UnreachableError when it cannot be started."""
    rotate(log)
    try:
        return processes.spawn_detached(command, log=log, pass_fds=pass_fds)
    except OSError as error:
        raise UnreachableError(f"{command.argv[0]} cannot be started: {error.strerror}", hint=f"see {log}") from error


def tail(log: Path, *, lines: int = 3) -> str:
    """The last lines of a log, for an error text."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 65536))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


async def end(lock: Path, record: ProcessRecord | None, *, grace_s: float) -> None:
    """End whoever is recorded, then whoever still holds the life lock (when its starter died too early)."""
    if record is not None and record.alive:
        await _end_alone(record.pid, record.ticks, grace_s=grace_s)
    for _ in range(int(KILL_S / PAUSE_S)):
        if locks.is_free(lock):
            return
        pid = locks.holder(lock)
        ticks = processes.start_ticks(pid) if pid else None
        if pid and ticks is not None:
            await _end_alone(pid, ticks, grace_s=grace_s)
        await asyncio.sleep(PAUSE_S)  # the threads of a process that ended may keep its files a moment longer


async def _end_alone(pid: int, ticks: int, *, grace_s: float) -> None:
    """TERM, then KILL, to this one process: what it started (supervised agents) goes on."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_S)):
        processes.send(pid, ticks, number)
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if not processes.alive(pid, ticks):
                return
            await asyncio.sleep(PAUSE_S)
