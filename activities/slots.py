"""Room on this host: numbered slots, each a file that names its holder, so a slot outlives the worker."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def claim(folder: Path, name: str, capacity: int) -> int | None:
    """Hold a slot for `name`, the one it has or a free one; return its index from 0, or None when all are taken."""
    with _locked(folder):
        taken = held(folder)
        for index, holder in taken.items():
            if holder == name:
                return index
        if len(taken) >= capacity:
            return None
        index = next(index for index in range(capacity) if index not in taken)
        (folder / str(index)).write_text(name, encoding="utf-8")
        return index


def release(folder: Path, name: str) -> None:
    """Give back what `name` holds; nothing when it holds none."""
    with _locked(folder):
        for index, holder in held(folder).items():
            if holder == name:
                (folder / str(index)).unlink()


def held(folder: Path) -> dict[int, str]:
    """The taken slots and their holders."""
    if not folder.is_dir():
        return {}
    names = {int(path.name): path.read_text("utf-8") for path in folder.iterdir() if path.name.isdigit()}
    return {index: name for index, name in sorted(names.items()) if name}  # empty: killed while claiming


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
