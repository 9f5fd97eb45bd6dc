"""The tree that lanes start from, asked path by path, and what it becomes with a submission laid on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..trees import TREE_MODE, Entry, Folder, Trees
from .manifest import LINK, Manifest


class Tree(Protocol):
    """A tree of files, by paths in bytes; the empty path is the top."""

    def at(self, path: bytes) -> Entry | None:
        """What lies at a path, a folder included; None when nothing does."""
        ...

    def folder(self, path: bytes) -> Mapping[bytes, Entry]:
        """The names in a folder; none when there is no folder."""
        ...

    def target(self, link: Entry) -> bytes:
        """Where a link leads."""
        ...


class StoredTree:
    """The tree of a commit of the store."""

    def __init__(self, trees: Trees, commit: str) -> None:
        self._trees = trees
        self._top = Entry(TREE_MODE, trees.tree_of(commit))

    def at(self, path: bytes) -> Entry | None:
        """What lies at a path."""
        entry: Entry | None = self._top
        for name in path.split(b"/") if path else ():
            entry = self._trees.read(entry.id).get(name) if entry and entry.is_tree else None
        return entry

    def folder(self, path: bytes) -> Folder:
        """The names in a folder."""
        entry = self.at(path)
        return self._trees.read(entry.id) if entry and entry.is_tree else {}

    def target(self, link: Entry) -> bytes:
        """Where a link leads."""
        return self._trees.content(link.id)


def joined_path(folder: bytes, name: bytes) -> bytes:
    """A path from its folder and its name."""
    return folder + b"/" + name if folder else name


def folders_of(path: bytes) -> list[bytes]:
    """The folders above a path, the outermost first, without the top."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def files_below(tree: Tree, path: bytes) -> Iterator[tuple[bytes, Entry]]:
    """Everything below a folder that is no folder."""
    for name, entry in tree.folder(path).items():
        inner = joined_path(path, name)
        if entry.is_tree:
            yield from files_below(tree, inner)
        else:
            yield inner, entry


@dataclass(frozen=True)
class Laid:
    """A tree with a manifest's paths written and deleted in it; nothing is computed that is not asked for.

    Attributes:
        tree: the tree before.
        manifest: what is laid on it.
        targets: where the manifest's own links lead.
    """

    tree: Tree
    manifest: Manifest
    targets: Mapping[bytes, bytes]

    @cached_property
    def written(self) -> Mapping[bytes, str]:
        """The modes of the paths that are written."""
        return {entry.path: entry.mode for entry in self.manifest.written}

    @cached_property
    def deleted(self) -> frozenset[bytes]:
        """The paths that are deleted."""
        return frozenset(entry.path for entry in self.manifest.entries if entry.deleted)

    @cached_property
    def folders(self) -> frozenset[bytes]:
        """The folders above the paths that are written."""
        return frozenset(folder for path in self.written for folder in folders_of(path))

    def remains(self, path: bytes, entry: Entry) -> bool:
        """Whether something of what the tree has at a path is still there, whatever is written in its place."""
        if not entry.is_tree:
            return path not in self.deleted and path not in self.written
        return any(self.remains(below, found) for below, found in files_below(self.tree, path))

    def link(self, path: bytes) -> bytes | None:
        """Where the link at a path leads; None when there is none."""
        if path in self.written:
            return self.targets.get(path) if self.written[path] == LINK else None
        entry = self.tree.at(path)
        if entry is None or entry.mode != LINK or path in self.deleted or path in self.folders:
            return None
        return self.tree.target(entry)

    def was(self, path: bytes, mode: str) -> bool:
        """Whether the tree has an entry of that mode at a path."""
        entry = self.tree.at(path)
        return entry is not None and entry.mode == mode
