"""The store: the bare repository `orch` owns per user repository; its refs, worktrees and objects live there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ..workflows.errors import RefusedError
from .artifacts import write_whole
from .git import Git
from .home import Home
from .objects import IMPORTED, link_objects
from .repository import Repository
from .settings import FILE, copy_settings

CONFIG = f"""\
[core]
\tlogAllRefUpdates = false
\thooksPath = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = orch
\temail = orch@localhost
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[include]
\tpath = {FILE}
"""
"""Appended to what `git init` finds out about the file system: the user's settings, but no hooks, keys or gc.

An agent's own commits need neither identity nor key: only its files are taken.
"""

APART = "apart"
"""The folder of the store's objects in which lies what runs make: no workspace borrows it, each gets what it needs.

What is not in it every workspace may read: the user's own history, and what lies in their working tree.
"""

FOREIGN_S = 300
"""Seconds that one call of git may take over files that an agent or a build wrote.

A dozen and a half of ** in their own .gitignore or .gitattributes keep it busy for years.
"""

USED = "used"
"""A file of the store's folder whose time says when a run last began with it."""


def store_key(repository: Repository) -> str:
    """A stable, readable name: every worktree of a repository, by whatever path it is entered, has the same one."""
    path = repository.common_dir
    name = path.parent.name if path.name == ".git" else path.name.removesuffix(".git")
    return readable_key(name, os.fsencode(path))


def readable_key(name: str, place: bytes) -> str:
    """A key for what is called `name` and lies at `place`."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "repository"
    return f"{slug}-{hashlib.sha256(place).hexdigest()[:8]}"


@dataclass(frozen=True)
class Store:
    """One store, by its key.

    Refs: `refs/orch/<run>/<name>` pins a commit for a run; `refs/user/<commit>` marks one of the user's as complete.

    Attributes:
        home: the state directory.
        key: from `store_key`.
        limit_s: wall seconds that one call of git may take, which fails then; None for no limit.
    """

    home: Home
    key: str
    limit_s: int | None = None

    @classmethod
    def of(cls, home: Home, repository: Repository) -> Store:
        """The store of a repository: made when it is missing, else its content settings are brought up to date."""
        if home.root.resolve().is_relative_to(repository.top):
            raise RefusedError("the state directory lies inside the repository", hint="point ORCH_STATE somewhere else")
        store = cls(home, store_key(repository))
        with store.lock():
            if not store.git_dir.is_dir():
                _build(store, repository)
            _set_apart(store.git_dir)
            copy_settings(repository, store.git_dir)
            (store.path / USED).touch()
        return store

    @property
    def path(self) -> Path:
        """The store's folder."""
        return self.home.store(self.key)

    @property
    def git_dir(self) -> Path:
        """The bare repository."""
        return self.path / "store.git"

    @property
    def git(self) -> Git:
        """Git on the bare repository: it reads everything, and writes apart."""
        limit = () if self.limit_s is None else ("timeout", "--kill-after=5", str(self.limit_s))
        apart = {"GIT_OBJECT_DIRECTORY": str(self.apart)} if self.apart.is_dir() else {}
        return Git(self.path, {"GIT_DIR": str(self.git_dir), **apart}, limit)

    @property
    def sharing(self) -> Git:
        """The same, but what it writes every workspace may read."""
        return Git(self.path, {"GIT_DIR": str(self.git_dir)})

    @property
    def apart(self) -> Path:
        """The objects that no workspace borrows."""
        return self.git_dir / "objects" / APART

    @property
    def wary(self) -> Git:
        """The same over files that an agent or a build wrote: a call that takes too long fails, being `overdue`."""
        return replace(self, limit_s=self.limit_s or FOREIGN_S).git

    @contextmanager
    def lock(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the store's lock, against all threads and processes; for steps on metadata. It cannot be taken twice.

        Without `wait` BlockingIOError is raised when somebody else holds it.
        """
        with self._locked(fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)):
            yield

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """The lock of the folder that is there now: one that was collected meanwhile is somebody else's trash."""
        with ExitStack() as stack:
            path, handle = self.path / "lock", None
            while handle is None or not _is_at(handle, path):
                self.path.mkdir(parents=True, exist_ok=True)
                handle = stack.enter_context(path.open("ab"))
                fcntl.flock(handle, how)
            yield

    def pin(self, ref: str, commit: str) -> None:
        """Point a ref at a commit."""
        self.git.run("update-ref", ref, commit)

    def resolve(self, ref: str) -> str | None:
        """The commit a ref or id names; None when there is none."""
        status, out, _ = self.git.attempt("rev-parse", "-q", "--verify", f"{ref}^{{commit}}")
        return None if status else out.decode().strip()

    def drop_run(self, run: str) -> None:
        """Delete all pins of a run."""
        refs = self.git.run("for-each-ref", "--format=delete %(refname)", f"refs/orch/{run}/")
        self.git.run("update-ref", "--stdin", stdin=refs)

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return self.git.text("rev-parse", "--verify", f"{commit}^{{tree}}")

    def diff(self, old: str, new: str) -> bytes:
        """The patch from one commit's or tree's files to another's; `git apply` takes it, binary files included."""
        return self.git.run(
            "diff-tree", "-r", "-p", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", old, new
        )

    def changed(self, old: str, new: str) -> list[bytes]:
        """The paths that differ."""
        return self.git.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)


def ensure_bare(store: Store, form: str) -> None:
    """Make a store for a repository that is not on this host, where it is missing; `form` is its object format."""
    with store.lock():
        if not store.git_dir.is_dir():
            _init(store, form).rename(store.git_dir)
        _set_apart(store.git_dir)


def _is_at(handle: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _build(store: Store, repository: Repository) -> None:
    """Make the store aside and rename it into place.

    The user's objects are linked into a folder of their own that the store borrows from: whoever may write the store's
    objects, as git in a workspace must, cannot reach files that are shared with the user.
    """
    linked = store.path / "linked"
    shutil.rmtree(linked, ignore_errors=True)
    aside = _init(store, repository.git.text("rev-parse", "--show-object-format"))
    (aside / "objects" / "info" / "alternates").write_text("../../linked\n")
    complete = link_objects(repository, linked)
    if complete and repository.head:
        git = Git(store.path, {"GIT_DIR": str(aside)})
        git.run("update-ref", f"{IMPORTED}/{repository.head}", repository.head)
    aside.rename(store.git_dir)


def _set_apart(git_dir: Path) -> None:
    """Let both folders of objects borrow from each other, also in a store that knew only one; idempotent."""
    apart, listed = git_dir / "objects" / APART, git_dir / "objects" / "info" / "alternates"
    if not apart.is_dir():
        aside = apart.with_name(f"{APART}.new")
        shutil.rmtree(aside, ignore_errors=True)
        (aside / "info").mkdir(parents=True)
        (aside / "info" / "alternates").write_text("..\n")
        before = listed.read_text().splitlines() if listed.exists() else []
        write_whole(listed, "".join(f"{line}\n" for line in dict.fromkeys([*before, APART])))
        aside.rename(apart)


def _init(store: Store, form: str) -> Path:
    """An empty bare repository with the store's own settings, aside."""
    aside = store.path / "store.git.new"
    shutil.rmtree(aside, ignore_errors=True)
    Git(store.path).run("init", "-q", "--bare", "--template=", f"--object-format={form}", str(aside))
    with (aside / "config").open("a") as config:
        config.write(CONFIG)
    return aside
