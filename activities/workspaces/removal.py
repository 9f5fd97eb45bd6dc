"""Removing what others filled: renamed away first, deleted afterwards, and nothing is followed out of it."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ...workflows.errors import HostFaultError

NICE = 10
"""How much less urgent deleting is than everything else."""

TRASH = ".trash-"
"""Begins the name of what was renamed away: no name of a run or a store begins so."""


def discard(path: Path, near: Path) -> None:
    """Rename a folder into the trash of the folder `near`, for `sweep`; a link or file is only unlinked."""
    try:
        if path.is_dir() and not path.is_symlink():
            path.rename(near / f"{TRASH}{secrets.token_hex(4)}")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        if not os.path.lexists(path):
            return  # somebody else was faster
        raise HostFaultError(f"cannot remove {path}: {error.strerror}", hint="end what still uses it") from error


def sweep(folder: Path) -> None:
    """Empty the trash of a folder, also that of interrupted calls; what resists stays for the next call.

    After `delete_in_background` it only begins: nobody has to wait until the last file is gone.
    """
    if _Background.thread is None:
        _empty(folder)
    else:
        _Background.thread.submit(_empty, folder)


def delete_in_background() -> None:
    """From now on this process empties trash on a thread of its own, at low priority. What it cannot finish stays."""
    if _Background.thread is None:
        _Background.thread = ThreadPoolExecutor(1, thread_name_prefix="sweeper", initializer=be_patient)


def be_patient() -> None:
    """Let everything else go first: lower the priority of this thread."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


class _Background:
    thread: ThreadPoolExecutor | None = None


def _empty(folder: Path) -> None:
    for trash in folder.glob(f"{TRASH}*"):
        remove_tree(trash)


def remove_tree(path: Path) -> None:
    """Delete a folder as far as that is possible, read-only and very deep folders inside included."""
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            _flatten(path)
        shutil.rmtree(path, ignore_errors=True)


def _flatten(top: Path) -> None:
    """Bring all folders up to the top, writable: none is too deep then to be deleted, however long its path was."""
    top.chmod(0o700)
    waiting = [top]
    while waiting:
        with suppress(OSError):
            for entry in list(os.scandir(waiting.pop())):
                if entry.is_dir(follow_symlinks=False):
                    folder = Path(entry)
                    folder.chmod(0o700)
                    waiting.append(folder.rename(top / f"{TRASH}{secrets.token_hex(8)}"))
