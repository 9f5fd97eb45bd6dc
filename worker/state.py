"""The state directory on disk: made, checked against the layout's version, and named by a stable host id."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..activities.home import STATE_VERSION, Home
from ..workflows.errors import RefusedError


def open_state(home: Home) -> None:
    """Create what is missing, private to the user.

    Raises RefusedError when the directory cannot be written or was written by a newer `orch`.
    """
    with writable(home):
        for folder in (home.root, home.engine, home.slots, home.root / "stores", home.root / "runs"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_version(home.root / "version")


@contextmanager
def writable(home: Home) -> Iterator[None]:
    """Turn what the file system refuses (permission, no space, a read-only mount) into a RefusedError."""
    try:
        yield
    except OSError as error:
        raise RefusedError(
            f"the state directory {home.root} cannot be used: {error.strerror or error}",
            hint="make it writable with room to spare, or set ORCH_STATE to a directory on a local disk",
        ) from error


def _check_version(path: Path) -> None:
    found = _text(path) or _keep_first(path, str(STATE_VERSION))
    if not found.isdecimal():
        raise RefusedError(
            f"{path} holds {found[:20]!r}, not a version", hint=f"restore it, or write {STATE_VERSION} in it"
        )
    if int(found) > STATE_VERSION:
        raise RefusedError(
            f"the state directory {path.parent} has version {found}, this orch knows {STATE_VERSION}",
            hint="upgrade orch, or set ORCH_STATE to another directory",
        )


def host_id(home: Home) -> str:
    """This host's name in task queues, `<hostname>-<6 hex>`; kept, so that a new worker finds its backlog."""
    path = home.root / "host-id"
    return _text(path) or _keep_first(path, f"{_hostname()}-{secrets.token_hex(3)}")


def _hostname() -> str:
    return re.sub(r"[^a-z0-9]+", "-", socket.gethostname().split(".")[0].lower()).strip("-") or "host"


def write_aside(path: Path, text: str) -> None:
    """Replace a file in one step: a reader, or a crash, finds the old text or the new, never a part."""
    _aside(path, text).replace(path)


def _keep_first(path: Path, text: str) -> str:
    """Write a file that many may write at once: the first text stays, and every caller gets that one."""
    aside = _aside(path, f"{text}\n")
    try:
        os.link(aside, path)
    except FileExistsError:
        return _text(path)
    finally:
        aside.unlink()
    return text


def _aside(path: Path, text: str) -> Path:
    aside = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(3)}.new")
    with aside.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return aside


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
