"""A control group for one job, where this process may make one: nothing leaves it by forking, so its end is certain.

With version 2 the group is only a fence to kill by; with version 1 the `pids` controller also bounds the threads.
What a job may use is watched all the same (`limits.py`): nothing here is required.
"""

# ruff: noqa: PTH112, PTH102, PTH106, PTH118, PTH123
from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from . import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 5.0
"""How long killed processes may take to vanish (one may hang in the kernel)."""


def make(name: str, threads: int) -> str:
    """Make a group below the one of this process and return its folder; empty where that is not allowed."""
    for parent in _parents():
        folder = os.path.join(parent, name)
        try:
            os.mkdir(folder)
        except OSError:
            continue
        with suppress(OSError):
            _write(folder, "pids.max", threads)
        return folder
    return ""


def refusals(folder: str) -> int:
    """How often something in a group was not allowed to fork; 0 where nobody counts."""
    try:
        return int(procfs.read(f"{folder}/pids.events").split()[1]) if folder else 0
    except (OSError, ValueError, IndexError):
        return 0


def join(folder: str) -> None:
    """Move this process into a group; it stays outside where that is refused."""
    with suppress(OSError):
        _write(folder, "cgroup.procs", 0)


def end(folder: str) -> None:
    """Kill everything in a group, and remove it. Idempotent; gives up on what hangs in the kernel."""
    until = time.monotonic() + PATIENCE_S
    with suppress(OSError):
        _write(folder, "pids.max", 0)  # nothing forks any more
    while os.path.isdir(folder) and time.monotonic() < until:
        with suppress(OSError):
            _write(folder, "cgroup.kill", 1)
        for pid in _members(folder):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.rmdir(folder)
            return
        time.sleep(0.005)


def _members(folder: str) -> list[int]:
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            return [int(line) for line in file]
    except OSError:
        return []


def _parents() -> Iterator[str]:
    """Where groups could be made: this process's own group, of version 1's `pids`, else of version 2."""
    try:
        mounts = [line.split() for line in procfs.read("/proc/self/mounts").decode(errors="replace").splitlines()]
        own = [line.split(":", 2) for line in procfs.read("/proc/self/cgroup").decode(errors="replace").splitlines()]
    except OSError:
        return
    for kind, controllers in (("cgroup", "pids"), ("cgroup2", "")):
        roots = [at for _, at, type_, options, *_ in mounts if type_ == kind and _has(options, controllers)]
        paths = [path for _, found, path in own if (controllers in found.split(",") if controllers else not found)]
        if roots and paths:
            yield os.path.join(roots[0], paths[0].lstrip("/"))


def _has(options: str, controllers: str) -> bool:
    return not controllers or controllers in options.split(",")


def _write(folder: str, name: str, value: int) -> None:
    with open(f"{folder}/{name}", "r+", encoding="ascii") as file:
        file.write(str(value))
