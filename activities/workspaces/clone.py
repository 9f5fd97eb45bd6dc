"""Clones that borrow the store's objects: refs, settings and new objects of their own, and no remote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..faults import explain
from ..git import Git, GitError
from ..store import Store
from . import BARE, INDEX, RECORD, TREE, Layers, note_provider
from .folding import check_names
from .gitdir import make_git_dir
from .removal import discard, sweep

GIT_DIR = "git"
"""The clone's git directory, beside the tree."""


class CloneProvider:
    """Works wherever git does; nothing that git does in a workspace reaches the store or another workspace."""

    name = "clone"

    def open(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:  # noqa: ARG002
        """Make a git directory by hand, which costs no process, and check out."""
        self.close(store, folder)
        check_names(store, commit)
        note_provider(folder, self.name)
        tree, git_dir = folder / TREE, folder / GIT_DIR
        make_git_dir(store, git_dir, commit)
        tree.mkdir()
        (tree / ".git").write_bytes(b"gitdir: " + os.fsencode(git_dir) + b"\n")
        try:
            Git(tree, {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(tree)}).run("read-tree", "--reset", "-u", commit)
        except GitError as error:
            self.close(store, folder)
            hint = "see that the programs its filters name are installed"
            raise explain(error, "the commit cannot be checked out", hint=hint) from error
        shutil.copy2(git_dir / "index", folder / INDEX)  # with its time: git compares it with those of the files
        return tree

    def copy(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """One like any other."""
        return self.open(store, folder, commit, layers)

    def close(self, store: Store, folder: Path) -> None:  # noqa: ARG002 - nothing of it lies in the store
        """Rename away, then delete; nothing is followed out of the folder."""
        if folder.is_symlink():
            folder.unlink()
        for name in (GIT_DIR, TREE):
            discard(folder / name, folder)
        for name in (INDEX, RECORD):
            (folder / name).unlink(missing_ok=True)
        sweep(folder)

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the store is only read
        """The clone's own git directory."""
        return (folder / GIT_DIR,)

    def entering(self, folder: Path, argv: tuple[str, ...], *, view: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - it is there for all
        """The command itself."""
        return argv

    def written(self, folder: Path) -> Path:
        """The tree."""
        return folder / TREE
