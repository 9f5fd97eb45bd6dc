"""Leases of devices: lock files that all state directories and all users of this host share, one for each device.

A lease is the kernel's lock on an open file (`flock`). It is free when nobody has the file open any more: nothing has
to be tidied up after a crash, and who inherits the descriptor holds the lease on. The files are empty and stay.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...workflows.errors import HostFaultError

VARIABLE = "ORCH_LEASES"
"""Names another folder; all that measure on this host must name the same."""

FOLDERS = ("/run/lock", "/var/lock", "/dev/shm", "/tmp")  # noqa: S108 - a name of its own is no use: all must find it
"""The first one that everybody may write to and nobody may tidy up in for others (the sticky bit)."""

POLL_S = 0.02
"""Seconds between two tries."""

TRIES = 100
"""A file that somebody removes between two looks is made anew, but not for ever."""

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Nothing is followed or waited for. Read-only does for a lock, so another user's file does, too; and without O_CREAT,
which kernels refuse for another user's file in such a folder (`fs.protected_regular`)."""


@dataclass(frozen=True)
class Lease:
    """Devices that are ours as long as one of the descriptors is open anywhere.

    Attributes:
        names: the devices.
        descriptors: one for each.
        waited_s: seconds until they were free.
    """

    names: tuple[str, ...]
    descriptors: tuple[int, ...]
    waited_s: float = 0.0


@dataclass(frozen=True)
class Taken:
    """Why there is no lease: who has it is not known, but what."""

    name: str


@asynccontextmanager
async def leased(names: Iterable[str], *, patience_s: float) -> AsyncIterator[Lease | Taken]:
    """Hold the devices, taken in sorted order so that no two wait for one another; else what is taken.

    What is had already is held while the next one is waited for: a large set is not starved by small ones.
    """
    begun, opened = time.monotonic(), list[int]()
    try:
        for name in sorted(set(names)):
            while (descriptor := take(name)) is None:
                if time.monotonic() >= begun + patience_s:
                    yield Taken(name)
                    return
                await asyncio.sleep(POLL_S)
            opened.append(descriptor)
        yield Lease(tuple(sorted(set(names))), tuple(opened), time.monotonic() - begun)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def take(name: str) -> int | None:
    """A descriptor that holds the lease of one device; None while somebody else has it."""
    path = folder() / f"orch-{name}.lock"
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
        if _leads_to(path, descriptor):
            return descriptor
        os.close(descriptor)  # tidied up since it was opened: whoever comes next would lock another file


def folder() -> Path:
    """Where the lock files lie. Raises HostFaultError when there is no place that all users of this host share."""
    if named := os.environ.get(VARIABLE):
        Path(named).mkdir(parents=True, exist_ok=True)
        return Path(named)
    for path in map(Path, FOLDERS):
        with suppress(OSError):
            if _is_shared(path.stat()) and os.access(path, os.W_OK | os.X_OK):
                return path
    raise HostFaultError(
        f"no folder for the leases of devices: none of {', '.join(FOLDERS)} is everybody's", hint=f"set {VARIABLE}"
    )


def _is_shared(found: os.stat_result) -> bool:
    everybody = stat.S_IWOTH | stat.S_ISVTX
    return stat.S_ISDIR(found.st_mode) and found.st_mode & everybody == everybody and found.st_uid == 0


def _opened(path: Path) -> int:
    """A descriptor of a regular file at the path, made if need be; it may be another user's."""
    for _ in range(TRIES):
        try:
            with suppress(FileNotFoundError):
                return _regular(path, os.open(path, OPEN))
            with suppress(FileExistsError):
                descriptor = os.open(path, OPEN | os.O_CREAT | os.O_EXCL, 0o644)
                os.fchmod(descriptor, 0o644)  # whatever the umask
                return descriptor
        except OSError as error:
            raise HostFaultError(
                f"the lock file {path} cannot be opened: {error.strerror}", hint="remove it"
            ) from error
    raise HostFaultError(f"the lock file {path} comes and goes", hint="see who removes it")


def _regular(path: Path, descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise HostFaultError(f"{path} is no file: the lease of a device cannot be taken", hint="remove it")
    return descriptor


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False
