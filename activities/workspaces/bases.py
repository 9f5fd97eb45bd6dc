"""The read-only layers below overlay workspaces: checkouts of commits, each made once and shared by all.

    stores/<key>/bases/
    ├── of/<commit>        the tree of that commit
    ├── <name>.lock        held while the layer is made, opened or removed
    └── <name>/            tree (the files), used (touched whenever the layer is opened); a layer that set-up made is
                           an overlay workspace of its own, whose upper directory has the files

A layer belongs to one boot of the host: what a power cut left of it is trusted by nobody afterwards.
"""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..artifacts import write_whole
from ..faults import explain
from ..git import Git, GitError
from ..store import Store
from . import TREE, UnfitError
from .folding import check_names
from .gitdir import make_git_dir, settings_digest
from .removal import discard, remove_tree, sweep

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
USED = "used"

_CHECKOUT = ("-c", "checkout.workers=0", "-c", "checkout.thresholdForParallelism=100")
"""All cores at once: it is done once for all workspaces."""


def bases_of(store: Store) -> Path:
    """The folder of a store's layers."""
    return store.path / "bases"


def tree_of(store: Store, commit: str) -> str:
    """The tree of a commit; remembered, since asking git takes longer than opening a workspace."""
    known = bases_of(store) / "of" / commit
    with suppress(FileNotFoundError):
        if (tree := known.read_text()).isalnum() and len(tree) == len(
            commit
        ):  # a power cut can leave a file without its content
            return tree
    write_whole(known, tree := store.tree_of(commit))
    return tree


def name_of(store: Store, commit: str) -> str:
    """The name of the layer that holds the checkout of a commit, made or not."""
    return f"{tree_of(store, commit)[:40]}-{settings_digest(store)}-{boot()}"


def boot() -> str:
    """A word for this boot of the host, a part of every layer's name."""
    return BOOT_ID.read_text()[:8] if BOOT_ID.exists() else "unknown"


def is_made(store: Store, name: str) -> bool:
    """Whether the layer is there, whole."""
    return (bases_of(store) / name / USED).exists()


def plain_base(store: Store, commit: str) -> str:
    """The name of the layer with the checkout of a commit, made now if it is not there.

    Raises UnfitError, RefusedError when the commit cannot be checked out, HostFaultError when the host is in the way.
    """
    return make_layer(store, name_of(store, commit), lambda tree: _check_out(store, tree, commit))


@contextmanager
def layer_lock(store: Store, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold a layer's lock: alone to make or remove it, shared to write its name into a workspace.

    Without `wait` BlockingIOError is raised when somebody else holds it.
    """
    bases_of(store).mkdir(parents=True, exist_ok=True)
    with (bases_of(store) / f"{name}.lock").open("ab") as handle:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield


def ready_at(store: Store, name: str) -> float:
    """Unix time from which on git sees every edit above the layer: git compares whole seconds."""
    return (bases_of(store) / name / TREE / ".git" / "index").stat().st_mtime


def make_layer(store: Store, name: str, fill: Callable[[Path], None]) -> str:
    """Have a layer filled, if it is not there already, and return its name; half of one is never seen."""
    if not is_made(store, name):
        with layer_lock(store, name):
            if not is_made(store, name):
                _make(store, name, fill)
    return name


def drop_layer(store: Store, name: str) -> None:
    """Remove a layer that no workspace needs."""
    with layer_lock(store, name):
        discard(bases_of(store) / name, bases_of(store))
    sweep(bases_of(store))


def _make(store: Store, name: str, fill: Callable[[Path], None]) -> None:
    for left in bases_of(store).glob(f"{name}.new-*"):
        remove_tree(left)  # a killed process's, whose git may still be at work: no name is used twice
    layer, aside = bases_of(store) / name, bases_of(store) / f"{name}.new-{secrets.token_hex(4)}"
    if layer.exists():
        discard(layer, bases_of(store))
    tree = aside / TREE
    tree.mkdir(parents=True)
    try:
        fill(tree)
    except BaseException:
        remove_tree(aside)
        raise
    (aside / USED).touch()
    aside.rename(layer)
    sweep(bases_of(store))


def _check_out(store: Store, tree: Path, commit: str) -> None:
    """A checkout whose index is younger than all its files, so that git never reads them again to be sure."""
    if store.git.ok("cat-file", "-e", f"{commit}:.gitmodules"):
        raise UnfitError("it has submodules")
    check_names(store, commit)
    git_dir = tree / ".git"
    make_git_dir(store, git_dir, commit)
    try:
        git = Git(tree, {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(tree)})
        git.run(*_CHECKOUT, "read-tree", "--reset", "-u", commit)
    except GitError as error:
        hint = "see that the programs its filters name are installed"
        raise explain(error, "the commit cannot be checked out", hint=hint) from error
    ready = math.floor(time.time()) + 1
    os.utime(git_dir / "index", (ready, ready))
