"""What lies at a path of the user's tree, found without ever passing through a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .renames import Spot

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PASSING = _FOLDER | getattr(os, "O_PATH", 0)  # a parent need not be readable, only passable


class Mark(NamedTuple):
    """What a file was when it was looked at; a folder's size is its number of entries and its time is 0."""

    inode: int
    size: int
    mtime_ns: int
    mode: int


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """A folder's descriptor."""
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_marks(top: Path, paths: Iterable[str]) -> dict[str, Mark | None]:
    """What lies at each path now."""
    with opened(top) as folder:
        return {path: look_up(folder, path) for path in paths}


@contextmanager
def place(top: int, path: str) -> Iterator[Spot]:
    """Open the folder that holds a path, never through a link; FileNotFoundError or NotADirectoryError."""
    folder = os.dup(top)
    try:
        *parents, name = path.split("/")
        for parent in parents:
            inner = os.open(parent, _PASSING, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield Spot(folder, name)
    finally:
        os.close(folder)


def look(spot: Spot) -> Mark | None:
    """What lies there now."""
    found = spot.stat()
    if found is None:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return Mark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
    folder = os.open(spot.name, _FOLDER, dir_fd=spot.folder)
    try:
        with os.scandir(folder) as entries:
            return Mark(found.st_ino, sum(1 for _ in entries), 0, found.st_mode)
    finally:
        os.close(folder)


def look_up(top: int, path: str) -> Mark | None:
    """What lies at a path below the top; None also where a parent is missing, a file or a link."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), place(top, path) as spot:
        return look(spot)
    return None
