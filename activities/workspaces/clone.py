"""Clones that borrow the store's objects: refs, settings and new objects of their own, and no remote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..faults import explain
from ..git import Git, GitError
from ..settings import FILE
from ..store import Store
from . import INDEX, TREE
from .removal import discard, sweep

GIT_DIR = "git"
"""The clone's git directory, beside the tree."""

_COPIED = ("config", FILE, "shallow", "info/attributes", "info/exclude")


class CloneProvider:
    """Works wherever git does; nothing that git does in a workspace reaches the store or another workspace."""

    name = "clone"

    def open(self, store: Store, folder: Path, commit: str) -> Path:
        """Make a git directory by hand, which costs no process, and check out."""
        self.close(store, folder)
        tree, git_dir = folder / TREE, folder / GIT_DIR
        _make(store, git_dir, commit)
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

    def close(self, store: Store, folder: Path) -> None:  # noqa: ARG002 - nothing of it lies in the store
        """Rename away, then delete; nothing is followed out of the folder."""
        if folder.is_symlink():
            folder.unlink()
        for name in (GIT_DIR, TREE):
            discard(folder / name, folder)
        (folder / INDEX).unlink(missing_ok=True)
        sweep(folder)

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the store is only read
        """The clone's own git directory."""
        return (folder / GIT_DIR,)


def _make(store: Store, git_dir: Path, commit: str) -> None:
    for name in ("objects/info", "refs", "info"):
        (git_dir / name).mkdir(parents=True)
    for name in _COPIED:
        if (store.git_dir / name).exists():
            shutil.copyfile(store.git_dir / name, git_dir / name)
    with (git_dir / "config").open("a") as config:
        config.write("[core]\n\tbare = false\n")
    (git_dir / "objects/info/alternates").write_bytes(os.fsencode(store.git_dir / "objects") + b"\n")
    (git_dir / "HEAD").write_text(f"{commit}\n")
