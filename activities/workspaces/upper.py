"""What was written in an overlay workspace, read from its upper directory beside the trees of its commit."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..changes import GITLINK
from ..trees import Entry, Trees

OPAQUE, REDIRECT = "overlay.opaque", "overlay.redirect"
"""Marks of a folder that hides the layers below, or shows another one's: attributes `trusted.` or `user.`."""

_CAP_SYS_ADMIN = 21

_RULES = (b".gitignore", b".gitattributes")
"""Files that tell git what to do with their folder's files."""


@dataclass
class Written:
    """What lies in an upper directory; paths relative to it.

    Attributes:
        known: files and links at paths of the commit, and what the commit has there.
        gone: what the commit has at paths where nothing is any more.
        odd: paths of the commit that hold a pipe, a socket or a device.
        lent: files that were brought up, unchanged, only so that git sees them.
        nested: whether a repository of its own may be in it.
        empty: whether it holds nothing at all.
    """

    known: dict[bytes, Entry] = field(default_factory=dict)
    gone: dict[bytes, Entry] = field(default_factory=dict)
    odd: list[bytes] = field(default_factory=list)
    lent: set[bytes] = field(default_factory=set)
    nested: bool = False
    empty: bool = True


def read_upper(upper: Path, lower: Sequence[Path], trees: Trees, tree: str) -> Written:
    """Walk through an upper directory and those trees of the commit that it touches.

    The rules of touched folders that lie in a layer of `lower` (the topmost first) are brought up, as overlayfs does
    with a file that is opened for writing: git shall find them beside the files that they speak of.
    """
    walk = _Walk(upper, lower, trees, Written())
    walk.folder(b"", Entry("40000", tree))
    return walk.written


def redirected(upper: Path) -> list[Path]:
    """The outermost folders that were renamed with all that the layers below hold in them, and not back."""
    return list(_redirected(upper, upper))


def _redirected(upper: Path, folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            path = Path(entry)
            own = {os.fsencode(entry.name), b"/" + os.fsencode(path.relative_to(upper))}
            if _marked(path, REDIRECT) and os.getxattr(path, f"{_namespace()}.{REDIRECT}") not in own:
                yield path
            else:  # a rename that fails leaves a mark, too
                yield from _redirected(upper, path)


@dataclass
class _Walk:
    upper: Path
    lower: Sequence[Path]
    trees: Trees
    written: Written

    def folder(self, path: bytes, tree: Entry | None, *, hidden: bool = False) -> None:
        """Look at a folder of the upper directory and what the commit has there, `hidden` by a folder made anew."""
        here = self.upper / os.fsdecode(path)
        entries, opaque = self.trees.read(tree.id) if tree else {}, hidden or (bool(path) and _marked(here, OPAQUE))
        with os.scandir(os.fsencode(here)) as scanned:
            found = {
                entry.name: entry.stat(follow_symlinks=False).st_mode
                for entry in scanned
                if path or entry.name != b".git"
            }
        nested = found.pop(b".git", None) is not None
        self.written.nested |= nested
        self.written.empty &= not found
        for name, mode in sorted(found.items()):
            self._entry(_join(path, name), entries.get(name), mode, hidden=opaque)
        if opaque:
            for name in entries.keys() - found.keys():
                self._drop(_join(path, name), entries[name])
        elif found:
            self._bring_rules(path, found, entries)
            if nested and tree:
                self._anchor(path, tree)

    def _entry(self, path: bytes, entry: Entry | None, mode: int, *, hidden: bool) -> None:
        written, is_tree = self.written, entry is not None and entry.is_tree
        if stat.S_ISDIR(mode) and not (entry and entry.mode == GITLINK):
            if entry and not is_tree:
                written.gone[path] = entry
            self.folder(path, entry if is_tree else None, hidden=hidden)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            if entry and is_tree:
                self._drop(path, entry)
            elif entry:
                written.known[path] = entry
        elif entry:
            self._drop(path, entry)
            if not (is_tree or _is_whiteout(self.upper / os.fsdecode(path))):
                written.odd.append(path)

    def _drop(self, path: bytes, entry: Entry) -> None:
        self.written.gone.update(self.trees.files(path, entry))

    def _bring_rules(self, path: bytes, found: dict[bytes, int], entries: Mapping[bytes, Entry]) -> None:
        for name in _RULES:
            if name not in found and (name in entries or len(self.lower) > 1):
                self._bring(_join(path, name), entries.get(name))

    def _anchor(self, path: bytes, tree: Entry) -> None:
        """Let git know a file of the commit: without one it takes a folder with a `.git` for another repository."""
        there = ((name, entry) for name, entry in self.trees.files(path, tree) if name not in self.written.gone)
        if anchor := next(there, None):
            self.written.known[anchor[0]] = anchor[1]
            self._bring(*anchor)

    def _bring(self, path: bytes, entry: Entry | None) -> None:
        name = os.fsdecode(path)
        target = self.upper / name
        if os.path.lexists(target) or (source := next(_versions(self.lower, name), None)) is None:
            return
        if stat.S_ISREG(mode := source.lstat().st_mode) or stat.S_ISLNK(mode):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
            self.written.lent.add(path)
            if entry:
                self.written.known[path] = entry


def _versions(lower: Sequence[Path], name: str) -> Iterator[Path]:
    """What layers hold at a path, the topmost first; its whiteout is the last one."""
    for layer in lower:
        if os.path.lexists(layer / name):
            yield layer / name


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _is_whiteout(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _marked(folder: Path, name: str) -> bool:
    return f"{_namespace()}.{name}" in os.listxattr(folder, follow_symlinks=False)


@cache
def _namespace() -> str:
    """Where overlayfs keeps its marks: out of agents' reach where we may mount; then `user.` ones are an agent's."""
    held = re.search(rb"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_bytes(), re.MULTILINE)
    return "trusted" if held and int(held[1], 16) >> _CAP_SYS_ADMIN & 1 else "user"
