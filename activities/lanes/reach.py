"""Files that somebody hostile may change at any moment.

No link is followed, nothing that is no file is opened for long, nothing is waited for, and no file is read twice.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from ..effect import PASSING

CHUNK = 1 << 20

AT_ONCE = 10_000
"""How many files of a folder are removed one by one."""

LEFT = "left-"
"""Begins the name of what is to be deleted later."""

NOWHERE = -1
"""In the place of a folder's descriptor: nothing is found in it."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without blocking: a pipe without a writer, or a file that somebody has leased, would be waited for."""

_LEASED = errno.EWOULDBLOCK
"""What opening such a file gives: no fault of this host, and over when whoever leased it pleases."""


class TooLargeError(Exception):
    """A file holds more than it may."""


class UnreadableError(Exception):
    """There is no file to be read; what it says is why."""


@contextmanager
def opened_folder(name: str | Path, *, within: int | None = None) -> Iterator[int]:
    """A descriptor of a folder; NOWHERE when there is none of that name, or only a link to one."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=within)
    except OSError as error:
        if error.errno in PASSING:
            raise
        yield NOWHERE
        return
    try:
        yield folder
    finally:
        os.close(folder)


def pour(name: str, within: int, most: int, sink: Callable[[bytes], object]) -> int:
    """Read a file of a folder once, to its end, and return its size.

    Raises UnreadableError when it is none, TooLargeError as soon as it is known to hold more than `most` bytes.
    """
    try:
        with open(os.open(name, _FILE, dir_fd=within), "rb", buffering=0) as file:  # noqa: PTH123 - by its descriptor
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UnreadableError("is no file")
            if facts.st_size > most:
                raise TooLargeError
            return _drained(file.read, most, sink)
    except OSError as error:
        if error.errno in PASSING and error.errno != _LEASED:
            raise
        raise UnreadableError("is not there" if isinstance(error, FileNotFoundError) else "cannot be read") from error


def _drained(read: Callable[[int], bytes | None], most: int, sink: Callable[[bytes], object]) -> int:
    size = 0
    while chunk := read(CHUNK):
        size += len(chunk)
        if size > most:
            raise TooLargeError
        sink(chunk)
    return size


def put_away(name: str, within: int, aside: int) -> bool:
    """Remove what lies in a folder, whatever it is; whether it is gone from there.

    Somebody may still be at work in it, so nothing is gone into by its path: files are removed two folders deep, and
    what is left then is renamed into the folder `aside`, to be deleted when nobody is there any more.
    """
    with suppress(OSError):
        os.unlink(name, dir_fd=within)
    with opened_folder(name, within=within) as folder:
        _empty(folder, depth=1)
    with suppress(OSError):
        os.rmdir(name, dir_fd=within)
    with suppress(OSError):
        os.rename(name, f"{LEFT}{secrets.token_hex(8)}", src_dir_fd=within, dst_dir_fd=aside)
    try:
        os.stat(name, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _empty(folder: int, *, depth: int) -> None:
    """Remove the first files of a folder, and of the folders in it."""
    with suppress(OSError):
        os.fchmod(folder, 0o700)  # one that cannot be written can be neither emptied nor moved
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, AT_ONCE)]
        for name in names:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
                continue
            if depth:
                with opened_folder(name, within=folder) as inner:
                    _empty(inner, depth=depth - 1)
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)
