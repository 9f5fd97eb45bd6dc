"""What a step may use: limits of the kernel, set before it begins, and a watch over all of its processes together.

A watch has to be cheap, so it looks at the machine often and at each process seldom: it goes through all processes when
the machine as a whole lost half of what the step has left, and else so rarely that this costs 1/1500 of a core.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress

from . import cgroups, procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TICK_S = 0.2
"""Seconds between two looks at the machine."""

SHARE = 1500
"""Looking at all processes may take one part in so many of a core."""

LOOK_S = 5.0
"""The longest time between two looks at all processes."""

THREADS = 2
"""Threads for each process that is allowed."""

FEW = 64
"""Of so many processes the kernel can tell in no time what they share."""

BLAMED = 64 << 20
"""A step that wrote this much while the disk filled up is the one that filled it."""

INODES = 10_000
"""A disk with room for fewer files is as full as one below the floor."""

OOM_SCORE = 500
"""Where the machine runs out of memory all the same, the kernel ends a step before the worker or the engine."""

TOO_LARGE = {-signal.SIGXFSZ, 128 + signal.SIGXFSZ}
"""How a process, and a shell for it, exits when one of its files reached the limit."""


def constrain(limits: Mapping[str, int]) -> None:
    """In a new process: take on the limits that the kernel keeps. Never RLIMIT_AS or _DATA: runtimes reserve much.

    The kernel counts RLIMIT_NPROC by user, over everything that runs for him, and not for root at all: it is a backstop
    for the time between two looks.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits["file"])
    if os.getuid():
        _lower(resource.RLIMIT_NPROC, (procfs.all_threads() or 0) + THREADS * limits["processes"])
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(OOM_SCORE))


class Urgency:
    """The right of this process to run before all others, where it may have it: a bomb's thousands starve it else.

    It is had only as long as it is hardly used: moving a flood of output is not urgent.
    """

    MOST = 0.2
    """Of a core, from one look to the next."""

    def __init__(self) -> None:
        self._since, self._used = time.monotonic(), time.thread_time()
        self.be(urgent=True)

    def adapt(self) -> None:
        """Take it or leave it, by what was used since the last call."""
        since, used = time.monotonic(), time.thread_time()
        if since < self._since + TICK_S / 2:
            return
        calm = used - self._used <= self.MOST * (since - self._since)
        self._since, self._used = since, used
        if calm != self._urgent:
            self.be(urgent=calm)

    def be(self, *, urgent: bool) -> None:
        """Take it, or give it back; what is forked never has it."""
        self._urgent = urgent
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK if urgent else os.SCHED_OTHER
        with suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(int(urgent)))


def _lower(which: int, wanted: int) -> None:
    _, hard = resource.getrlimit(which)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(which, (most, most))


def size(count: int) -> str:
    """Bytes in words: `8 GiB`, `200 MiB`."""
    unit, name = (1 << 30, "GiB") if count >= 1 << 30 else (1 << 20, "MiB")
    return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"


class Watch:
    """Tells when the processes below this one, all together, use more than a step may."""

    def __init__(self, limits: Mapping[str, int], place: str, group: str) -> None:
        """`place` is a folder on the disk that the step writes to, `group` its control group, if it has one."""
        self._limits, self._place, self._group, self.urgency = limits, place, group, Urgency()
        self._refusals = cgroups.refusals(group)
        self._tick = self._look = self._blame = 0.0
        self._processes = self._memory = 0
        self._all = procfs.machine_bytes()
        self._threads_then, self._available_then = procfs.all_threads(), procfs.available_bytes()

    def broken(self) -> str:
        """The limit that is broken now, in words; empty while there is none. Most calls cost nothing."""
        now = time.monotonic()
        if now < self._tick:
            return ""
        self._tick = now + TICK_S
        self.urgency.adapt()
        if problem := self._disk(now):
            return problem
        if refused := self.refused():  # faster than two looks, and perhaps gone since
            return refused
        return self._family(now) if now >= self._look or self._closing_in() else ""

    def refused(self) -> str:
        """The limit at which the kernel let the step have no more, in words; empty when it never had to."""
        return self._threads() if cgroups.refusals(self._group) > self._refusals else ""

    def _closing_in(self) -> bool:
        """Whether the machine lost half of what the step had left when all its processes were looked at."""
        threads, available = procfs.all_threads(), procfs.available_bytes()
        more = (threads or 0) - (self._threads_then or 0)
        less = (self._available_then or 0) - (available or 0)
        left = self._limits["processes"] - self._processes, self._limits["memory"] - self._memory
        return more > left[0] // 2 or less > left[1] // 2

    def _family(self, now: float) -> str:
        """Look at every process of the step; counting comes first, for all else waits for whom a bomb starves."""
        self._threads_then, self._available_then = procfs.all_threads(), procfs.available_bytes()
        begun = time.thread_time()
        members = procfs.family({os.getpid()})
        processes, memory = self._limits["processes"], self._limits["memory"]
        self._processes, threads = len(members), sum(member.threads for member in members)
        if self._processes > processes:
            return f"{processes:,} processes"
        if threads > THREADS * processes:
            return self._threads()
        self._memory = self._together(members) + (procfs.scratch_bytes(members[-1].pid) if members else 0)
        self._look = now + min(LOOK_S, SHARE * (time.thread_time() - begun))
        return f"{size(memory)} of memory" if self._memory > memory else ""

    def _threads(self) -> str:
        return f"{THREADS * self._limits['processes']:,} threads"

    def _together(self, members: list[procfs.Member]) -> int:
        """Their memory. What they share is counted once as soon as that decides, for it is dear to tell."""
        resident = sum(member.resident for member in members)
        most = min(resident, self._all - (self._available_then or 0))  # no more than the whole machine uses
        if most <= self._limits["memory"] or len(members) > FEW:
            return most
        shares = ((procfs.private_bytes(member.pid), member.resident) for member in members)
        return sum(whole if share is None else share for share, whole in shares)

    def _disk(self, now: float) -> str:
        """Whether the disk is nearly full by this step's doing, or so full that it does not matter by whose."""
        try:
            disk = os.statvfs(self._place)
        except OSError:
            return ""
        floor = self._limits["disk_floor"]
        room = disk.f_bavail * disk.f_frsize / max(floor, 1)
        files = disk.f_favail / INODES if disk.f_files else 1.0
        left = min(room, files)
        if left >= 1.0 or (left >= 0.5 and not self._filled(now)):
            return ""
        return f"{size(floor)} of free disk" if room <= files else f"room for {INODES:,} files"

    def _filled(self, now: float) -> bool:
        """Whether this step wrote so much that it is to blame; asked for once a second."""
        if now < self._blame:
            return False
        self._blame = now + 1.0
        pids = [os.getpid(), *procfs.below({os.getpid()})]
        return sum(map(procfs.written_bytes, pids)) >= BLAMED
