"""The files of a commit, read from the user's repository or, where only that has it, from its store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from .git import Git, GitError
from .home import Home
from .repository import Repository
from .store import Store, store_key

FILES = frozenset({"100644", "100755"})
"""Modes of what has content: links and submodules have none."""


class Leaf(NamedTuple):
    """A path's mode and object id."""

    mode: str
    id: str


@dataclass(frozen=True)
class CommitTree:
    """A commit and where its objects are.

    Attributes:
        git: reads it.
        commit: its full id.
    """

    git: Git
    commit: str

    @classmethod
    def find(cls, home: Home, repository: Repository, commit: str) -> CommitTree | None:
        """A commit of the user's, or one of a round that was never promoted; None when neither has it."""
        store = Store(home, store_key(repository))
        places = [repository.git, *([store.git] if store.git_dir.is_dir() else [])]
        return next((cls(git, commit) for git in places if is_commit(git, commit)), None)

    @cached_property
    def leaves(self) -> Mapping[bytes, Leaf]:
        """Everything in it that is no folder, by path."""
        found = {}
        for record in self.git.lines("ls-tree", "-r", "-z", "--full-tree", self.commit):
            facts, _, name = record.partition(b"\t")
            mode, _, oid = facts.decode().split(" ")
            found[name] = Leaf(mode, oid)
        return found

    def content(self, path: str) -> bytes | None:
        """A file's bytes as git keeps them; None for a folder, a link, a submodule, and where nothing is."""
        leaf = self.leaves.get(os.fsencode(path))
        return self.git.run("cat-file", "blob", leaf.id) if leaf and leaf.mode in FILES else None

    def sha256(self, path: str) -> str | None:
        """The SHA-256 of a file's content; None where there is none."""
        content = self.content(path)
        return None if content is None else sha256(content).hexdigest()

    def text(self, path: str) -> str | None:
        """A file's text; empty for a folder and for what is no text, None where nothing is."""
        name = os.fsencode(path)
        content = self.content(path)
        if content is not None:
            return content.decode("utf-8", "replace")
        below = name + b"/"
        there = name in self.leaves or any(leaf.startswith(below) for leaf in self.leaves)
        return "" if there else None


def is_commit(git: Git, name: str) -> bool:
    """Whether a full id is that of a commit, not of a tag or a tree."""
    try:
        return git.text("cat-file", "-t", name) == "commit"
    except GitError:
        return False


def named_commit(git: Git, name: str) -> str | None:
    """The full id of the commit that a branch, a tag or an id names; None where there is none."""
    status, out, _ = git.attempt("rev-parse", "-q", "--verify", "--end-of-options", f"{name}^{{commit}}")
    return None if status else out.decode().strip()
