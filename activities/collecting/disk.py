"""Room on disk as the file system counts it: blocks, and a file with several names once."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

BLOCK = 512
"""The unit of `st_blocks`."""


def freed_by(paths: Iterable[Path]) -> int:
    """Bytes that removing these paths frees; a file that has a name elsewhere, as in the user's repository, frees none.

    Nothing is followed out of the paths; what vanishes meanwhile counts nothing.
    """
    whole, shared = 0, dict[tuple[int, int], tuple[int, int]]()
    for found in _all(paths):
        size = found.st_blocks * BLOCK
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            whole += size
            continue
        left, _ = shared.get((found.st_dev, found.st_ino), (found.st_nlink, 0))
        shared[found.st_dev, found.st_ino] = left - 1, size
    return whole + sum(size for left, size in shared.values() if left <= 0)


def free_bytes(path: Path) -> int:
    """Bytes free for this user on the disk that holds `path`, or would hold it."""
    return shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.exists())).free


def _all(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        try:
            found = path.lstat()
        except OSError:
            continue
        yield found
        if stat.S_ISDIR(found.st_mode):
            yield from _inside(path)


def _inside(folder: Path) -> Iterator[os.stat_result]:
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield found
            if stat.S_ISDIR(found.st_mode):
                waiting.append(entry.path)
