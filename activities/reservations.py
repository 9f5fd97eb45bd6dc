"""Reservations: one live run at a time may promote into a working tree."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from .artifacts import is_closed, write_whole
from .home import Home
from .store import Store


def reserve(home: Home, store: Store, top: Path, run: str) -> str:
    """Reserve a working tree for a run and return who holds it: this run, or a live other one."""
    path = _path(store, top)
    with store.lock():
        holder = path.read_text(encoding="utf-8") if path.exists() else ""
        if holder and holder != run and not is_closed(home, holder):
            return holder
        write_whole(path, run)
    return run


def release(store: Store, top: Path, run: str) -> None:
    """Give a working tree back if this run holds it. Idempotent."""
    path = _path(store, top)
    with store.lock():
        if path.exists() and path.read_text(encoding="utf-8") == run:
            path.unlink()


def _path(store: Store, top: Path) -> Path:
    return store.path / "reserved" / sha256(str(top.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
