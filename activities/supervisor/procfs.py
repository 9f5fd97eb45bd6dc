"""What /proc tells of other processes."""

# ruff: noqa: PTH116, PTH208
from __future__ import annotations

import os

PAGE = os.sysconf("SC_PAGE_SIZE")

_PARENT, _THREADS, _STARTED, _RESIDENT = 1, 17, 19, 21
"""Fields of /proc/PID/stat, counted from the state."""


class Member:
    """One process of a family: its number, its threads, its resident bytes (what it shares counted in full)."""

    __slots__ = ("pid", "resident", "threads")

    def __init__(self, pid: int, threads: int, resident: int) -> None:
        self.pid, self.threads, self.resident = pid, threads, resident


def start_ticks(pid: int) -> int | None:
    """When the process started, in ticks since boot; None when it is gone or a zombie."""
    return int(fields[_STARTED]) if (fields := _stat(pid)) else None


def below(roots: set[int]) -> list[int]:
    """Every living process that descends from one of `roots`, these not included; parents come first."""
    return [member.pid for member in family(roots)]


def family(roots: set[int]) -> list[Member]:
    """Every living process that descends from one of `roots`, these not included; parents come first."""
    children: dict[int, list[Member]] = {}
    for pid in pids():
        if fields := _stat(pid):
            member = Member(pid, int(fields[_THREADS]), int(fields[_RESIDENT]) * PAGE)
            children.setdefault(int(fields[_PARENT]), []).append(member)
    found: list[Member] = []
    level = list(roots)
    while level:
        members = [member for pid in level for member in children.pop(pid, ())]
        found.extend(members)
        level = [member.pid for member in members]
    return found


def children() -> list[int]:
    """The children of this process, zombies too; cheaper than a look at all processes."""
    try:
        return [int(pid) for pid in read(f"/proc/self/task/{os.getpid()}/children").split()]
    except OSError:  # a kernel without this file
        return []


def pids() -> list[int]:
    """All processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def private_bytes(pid: int) -> int | None:
    """A process's memory with what it shares divided among those who share it; None where it cannot be told."""
    return _line(f"/proc/{pid}/smaps_rollup", b"Pss:", 1024)


def scratch_bytes(pid: int) -> int:
    """What lies in the /dev of a process that has one of its own, in memory: a sandbox's; 0 where it is everybody's."""
    try:
        theirs = f"/proc/{pid}/root/dev"
        if os.stat(theirs).st_dev == os.stat("/dev").st_dev:
            return 0
        disk = os.statvfs(theirs)
    except OSError:
        return 0
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def written_bytes(pid: int) -> int:
    """What a process and those children of it that it waited for wrote to disks; 0 where it cannot be told."""
    return _line(f"/proc/{pid}/io", b"write_bytes:", 1) or 0


def machine_bytes() -> int:
    """The memory of the machine."""
    return PAGE * os.sysconf("SC_PHYS_PAGES")


def available_bytes() -> int | None:
    """Memory of the machine that could be had without swapping."""
    return _line("/proc/meminfo", b"MemAvailable:", 1024)


def all_threads() -> int | None:
    """Threads of all processes of the machine."""
    try:
        return int(read("/proc/loadavg").split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return None


def read(path: str, most: int = 1 << 16) -> bytes:
    """The first bytes of a small file; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def _line(path: str, name: bytes, unit: int) -> int | None:
    try:
        return int(read(path, 4096).partition(name)[2].split(None, 1)[0]) * unit
    except (OSError, ValueError, IndexError):
        return None


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the state on; None for what is gone or a zombie."""
    try:
        fields = read(f"/proc/{pid}/stat", 1024).rpartition(b")")[2].split(None, _RESIDENT + 1)
    except OSError:
        return None
    return fields if fields and fields[0] not in b"ZX" else None
