"""Linked, detached worktrees of the store: they work wherever git does."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from ..faults import explain
from ..git import Git, GitError
from ..store import Store
from . import BARE, INDEX, RECORD, TREE, Layers, note_provider
from .folding import check_names
from .removal import discard, sweep


class WorktreeProvider:
    """The provider that works everywhere; opening costs one checkout."""

    name = "worktree"

    def open(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:  # noqa: ARG002
        """Check out into a new worktree; only publishing its entry is done under the store's lock."""
        self.close(store, folder)
        check_names(store, commit)
        note_provider(folder, self.name)
        tree, admin = folder / TREE, _admin(store, folder)
        tree.mkdir(parents=True)
        (tree / ".git").write_bytes(b"gitdir: " + os.fsencode(admin) + b"\n")
        _publish(store, admin, tree, commit)
        try:
            Git(tree, {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(tree)}).run("read-tree", "--reset", "-u", commit)
        except GitError as error:
            self.close(store, folder)
            hint = "see that the programs its filters name are installed"
            raise explain(error, "the commit cannot be checked out", hint=hint) from error
        shutil.copy2(admin / "index", folder / INDEX)  # with its time: git compares it with those of the files
        return tree

    def copy(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """One like any other."""
        return self.open(store, folder, commit, layers)

    def close(self, store: Store, folder: Path) -> None:
        """Rename away under the lock, delete after it; nothing is followed out of the folder."""
        if folder.is_symlink():
            folder.unlink()
        with store.lock():
            discard(_admin(store, folder), store.path)
            discard(folder / TREE, folder)
        for name in (INDEX, RECORD):
            (folder / name).unlink(missing_ok=True)
        sweep(store.path)
        sweep(folder)

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:
        """The worktree's entry (HEAD, index, logs) and the store's objects."""
        return _admin(store, folder), store.git_dir / "objects"

    def entering(self, folder: Path, argv: tuple[str, ...], *, view: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - it is there for all
        """The command itself."""
        return argv

    def written(self, folder: Path) -> Path:
        """The tree."""
        return folder / TREE


def _admin(store: Store, folder: Path) -> Path:
    """The worktree's entry in the store; named after the folder, so that it is found for a damaged worktree, too."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", folder.name).strip("-")[:40]
    return store.git_dir / "worktrees" / f"{slug}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"


def _publish(store: Store, admin: Path, tree: Path, commit: str) -> None:
    """Write the entry aside and rename it into place: `git worktree` elsewhere never sees half of it."""
    aside = store.path / f"entry-{admin.name}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    (aside / "HEAD").write_text(f"{commit}\n")
    (aside / "commondir").write_text("../..\n")
    (aside / "gitdir").write_bytes(os.fsencode(tree / ".git") + b"\n")
    with store.lock():
        while aside.exists():
            admin.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # `git worktree prune` of an agent removes the parent while it is empty
                aside.rename(admin)
