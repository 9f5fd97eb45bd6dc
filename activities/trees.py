"""Trees of the store, folder by folder, through git processes that stay: what is not asked for costs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple, Self

from .changes import NOTHING, Change
from .git import Git, GitError

TREE_MODE = "40000"

PENDING = 256
"""Trees that git may be behind: its answers to more would fill the pipe."""


class Entry(NamedTuple):
    """What a tree says of a name: an octal mode without leading zeros, as git writes it, and an object id."""

    mode: str
    id: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder."""
        return self.mode == TREE_MODE


Folder = Mapping[bytes, Entry]
"""The entries of one tree, by name."""


class Trees:
    """Reads and writes trees; a context manager that ends its processes."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._stack = ExitStack()
        self._known: dict[str, Folder] = {}
        self._pending: list[str] = []
        self._width = 40

    def __enter__(self) -> Self:
        """Start both, to be ready by the time they are asked."""
        self._reader = self._stack.enter_context(self._git.talk("cat-file", "--batch"))
        self._writer = self._stack.enter_context(self._git.talk("mktree", "-z", "--missing", "--batch"))
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._stack.close()

    def tree_of(self, name: str) -> str:
        """The id of the tree that a commit, ref or tree names; raise GitError when there is none."""
        return self._ask(f"{name}^{{tree}}")[0]

    def commit_of(self, name: str) -> str | None:
        """The id of the commit that a ref or id names; None when there is none."""
        try:
            return self._ask(f"{name}^{{commit}}")[0]
        except GitError:
            return None

    def read(self, tree: str) -> Folder:
        """The entries of a tree; raise GitError when it is missing."""
        if tree not in self._known:
            oid, data = self._ask(tree)
            width, entries, at = len(oid) // 2, {}, 0
            while at < len(data):
                space = data.index(b" ", at)
                end = data.index(b"\0", space)
                mode, at = data[at:space].decode(), end + 1 + width
                entries[data[space + 1 : end]] = Entry(mode, data[end + 1 : at].hex())
            self._known[tree] = entries
        return self._known[tree]

    def content(self, name: str) -> bytes:
        """What a blob or a commit holds, whole; raise GitError when it is missing."""
        return self._ask(name)[1]

    def _write(self, folder: Folder) -> str:
        """Have a tree written and return its id, which is known before git has answered."""
        entries = sorted(folder.items(), key=lambda item: item[0] + b"/" * item[1].is_tree)
        data = b"".join(e.mode.encode() + b" " + name + b"\0" + bytes.fromhex(e.id) for name, e in entries)
        lines = (f"{e.mode} {_kind(e)} {e.id}\t".encode() + name + b"\0" for name, e in entries)
        self._writer.send(b"".join(lines) + b"\0")
        self._pending.append(oid := _hash(b"tree %d\0" % len(data) + data, self._width))
        if len(self._pending) >= PENDING:
            self._settle()
        return oid

    def _settle(self) -> None:
        """Wait until git has written all trees."""
        while self._pending:
            oid = self._pending.pop(0)
            if self._writer.hear().decode() != oid:
                raise GitError(self._writer.args, 128, f"tree {oid} was not written")

    def files(self, name: bytes, entry: Entry) -> Iterator[tuple[bytes, Entry]]:
        """Everything at and below an entry that is no tree, with its path."""
        if not entry.is_tree:
            yield name, entry
            return
        for inner, found in self.read(entry.id).items():
            yield from self.files(name + b"/" + inner, found)

    def spliced(self, tree: str, changes: Iterable[Change]) -> str:
        """The id of a tree with changes made to it. Only trees on the way are looked at."""
        after = self._spliced(tree, changes) or self._write({})
        self._settle()
        return after

    def _spliced(self, tree: str | None, changes: Iterable[Change]) -> str | None:
        """None when nothing is left in it."""
        leaves: dict[bytes, Entry | None] = {}
        inner: dict[bytes, list[Change]] = {}
        for change in changes:
            first, below, rest = change.name.partition(b"/")
            if below:
                inner.setdefault(first, []).append(_renamed(change, rest))
            else:
                leaves[first] = None if change.mode == NOTHING else Entry(change.mode, change.id)
        entries = dict(self.read(tree)) if tree else {}
        for name, below_it in inner.items():
            before = entries.pop(name, None)
            after = self._spliced(before.id if before and before.is_tree else None, below_it)
            if after:
                entries[name] = Entry(TREE_MODE, after)
        for name, leaf in leaves.items():
            if leaf:
                entries[name] = leaf
            elif name not in inner:
                entries.pop(name, None)
        return self._write(entries) if entries else None

    def _ask(self, name: str) -> tuple[str, bytes]:
        answer = self._reader.ask(f"{name}\n".encode())
        oid, *facts = answer.decode().rsplit(" ", 2)
        if len(facts) != 2:
            raise GitError(self._reader.args, 128, answer.decode())
        data = self._reader.stdout.read(int(facts[1]) + 1)
        self._width = len(oid)
        return oid, data[:-1]


def _hash(data: bytes, width: int) -> str:
    """The id of an object, in as many hexadecimal digits as the repository has."""
    algorithm = "sha1" if width == 40 else "sha256"
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def _kind(entry: Entry) -> str:
    return {TREE_MODE: "tree", "160000": "commit"}.get(entry.mode, "blob")


def _renamed(change: Change, name: bytes) -> Change:
    return Change(change.old_mode, change.mode, change.old_id, change.id, name)
