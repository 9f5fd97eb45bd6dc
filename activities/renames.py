"""Renames that never overwrite: move to a free name, or exchange two names, in one step of the kernel.

Where the kernel or the file system knows no such flags, hard links give the next best: the name in the user's tree
still shows the old or the new file at any instant, and `settle` finishes what a killed process left half done.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_NOREPLACE, _EXCHANGE = 1, 2
_UNKNOWN_FLAG = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
_SPARE = "~"


@dataclass(frozen=True)
class Spot:
    """A name in an open folder.

    Attributes:
        folder: the folder's file descriptor.
        name: the last component, never a path.
    """

    folder: int
    name: str

    def stat(self) -> os.stat_result | None:
        """What lies there (a link itself, not its target), or None."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


def move(source: Spot, target: Spot) -> None:
    """Rename to a name that must be free; FileExistsError when it is not."""
    try:
        _renameat2(source, target, _NOREPLACE)
    except OSError as error:
        if error.errno not in _UNKNOWN_FLAG:
            raise
        _move_by_link(source, target)


def exchange(slot: Spot, target: Spot) -> None:
    """Swap two existing names; neither is ever missing where the kernel can, `target` never is elsewhere."""
    try:
        _renameat2(slot, target, _EXCHANGE)
    except OSError as error:
        if error.errno not in _UNKNOWN_FLAG:
            raise
        _exchange_by_link(slot, target)


def settle(slot: Spot, target: Spot) -> None:
    """Finish or take back what a process killed inside the link variants left; does nothing otherwise."""
    spare = Spot(slot.folder, slot.name + _SPARE)
    if spare.stat() is not None:
        _unlink(spare) if slot.stat() is not None else _rename(spare, slot)
    here, there = slot.stat(), target.stat()
    if here and there and not stat.S_ISDIR(here.st_mode) and os.path.samestat(here, there):
        _unlink(target)  # a move out not finished, or a move in taken back: the copy in the slot is the same file


def reaches(first: Path, second: Path) -> bool:
    """Whether files can be renamed between two folders: same file system and same mount. Changes nothing."""
    try:
        (first / ".orch-missing").rename(second / ".orch-missing")
    except OSError as error:
        return error.errno != errno.EXDEV
    return True


def flush(folder: int) -> None:
    """Bring the file system of an open folder to disk: at a power loss no rename outruns its contents."""
    syncfs = _symbol("syncfs")
    if syncfs is None or syncfs(folder) != 0:
        os.sync()


def _renameat2(source: Spot, target: Spot, flags: int) -> None:
    call = _symbol("renameat2")
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(source.name), os.fsencode(target.name)
    if call(source.folder, names[0], target.folder, names[1], ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source.name, None, target.name)


def _symbol(name: str) -> Callable[..., int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, name, None)


def _move_by_link(source: Spot, target: Spot) -> None:
    found = source.stat()
    if found is not None and stat.S_ISDIR(found.st_mode):
        if target.stat() is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.name)
        _rename(source, target)
        return
    _link(source, target)
    _unlink(source)


def _exchange_by_link(slot: Spot, target: Spot) -> None:
    spare = Spot(slot.folder, slot.name + _SPARE)
    _link(target, spare)
    try:
        _rename(slot, target)
    except OSError:
        with contextlib.suppress(OSError):
            _unlink(spare)
        raise
    _rename(spare, slot)


def _link(source: Spot, target: Spot) -> None:
    os.link(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder, follow_symlinks=False)


def _rename(source: Spot, target: Spot) -> None:
    os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)


def _unlink(place: Spot) -> None:
    os.unlink(place.name, dir_fd=place.folder)
