"""The trash of the state directory: what goes is renamed into it at once, and deleted when there is time."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..home import Home
from ..workspaces.removal import TRASH, be_patient, remove_tree
from .scene import PARTS


def folder(home: Home) -> Path:
    """Where what was renamed away waits for its deletion."""
    return home.root / "trash"


def discard(home: Home, path: Path) -> Path:
    """Rename `path` into the trash and return where it lies now; a link is only unlinked. Raises OSError.

    On another disk it is renamed aside where it stands: half of it is never taken for the whole.
    """
    if path.is_symlink():
        path.unlink()
        return path
    folder(home).mkdir(mode=0o700, parents=True, exist_ok=True)  # what lay in private folders stays private
    for target in (folder(home) / secrets.token_hex(6), path.with_name(f"{TRASH}{secrets.token_hex(6)}")):
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            return target
    raise OSError(errno.EXDEV, "it cannot be renamed", str(path))


def erase(path: Path) -> str:
    """Delete what was renamed away; return why it is not gone, empty when it is."""
    remove_tree(path)
    if not os.path.lexists(path):
        return ""
    try:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError as error:
        return f"{error.strerror}: {_resisting(path)}"
    return ""


def _resisting(path: Path) -> Path:
    """What is left at the bottom of a folder: it stood in the way of all above it."""
    with suppress(OSError):
        while path.is_dir() and not path.is_symlink() and (inner := sorted(path.iterdir())):
            path = inner[0]
    return path


def lying(home: Home) -> Iterator[Path]:
    """All that was renamed away, by this and by interrupted processes: ours, and that of workspaces and stores.

    Only folders that nobody else may fill are looked at: what an agent calls so in its working copy is its work.
    """
    yield from sorted(folder(home).glob("*"))
    for place in ("", "*/", "*/*/", "stores/*/bases/", *(f"runs/*/attempts/*{part}/" for part in PARTS)):
        yield from sorted(home.root.glob(f"{place}{TRASH}*"))


def sweep(home: Home) -> None:
    """Delete all that was renamed away, at low priority on this thread; what resists stays for the next time."""
    be_patient()
    for path in lying(home):
        erase(path)
