"""Protected paths: which they are, putting them back, and seeing whether they changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pathspec

from .changes import NOTHING, Change, joined
from .git import Git
from .recording import openable_rules, untouched
from .store import Store
from .upper_changes import disturbed_upper
from .workspaces import INDEX, TREE
from .workspaces.overlay import is_overlay

ADDABLE = "="
"""Before a glob: what is there is protected, and candidates may add."""


ATTRIBUTES = b".gitattributes"
"""The file whose lines say how git converts others."""


UNTOLD = b"more than git can tell"
"""Stands for paths when git is overdue: what was left for it to read keeps it busy for ever."""


_NO_FILTER = frozenset({b"unspecified", b"unset"})

ENVIRONMENTS = (".git", ".venv", "venv", "node_modules", ".tox", ".nox", "vendor", "target")
"""Folders that set-up and rungs fill by the thousand: not looked through for additions."""


def matcher(globs: Sequence[str]) -> pathspec.GitIgnoreSpec:
    """A spec with the rules of a .gitignore, `=GLOB` counting as the glob; ask it with `matches`."""
    return pathspec.GitIgnoreSpec.from_lines(glob.removeprefix(ADDABLE) for glob in globs)


def matches(spec: pathspec.GitIgnoreSpec, name: bytes) -> bool:
    """Whether a path of a tree matches; a newline in a name cannot hide it from `**`."""
    return bool(spec.match_file(name.decode("utf-8", "surrogateescape").replace("\n", "_")))


def protected_changes(changes: Sequence[Change], protected: Sequence[str]) -> list[Change]:
    """Those of the changes whose path is protected; what is added counts, but for paths that only `=GLOB` names."""
    spec, closed = matcher(protected), matcher([glob for glob in protected if not glob.startswith(ADDABLE)])
    return [change for change in changes if matches(closed if change.old_mode == NOTHING else spec, change.name)]


def bent_attributes(git: Git, commit: str, changes: Sequence[Change], protected: Sequence[str]) -> list[Change]:
    """The changes to .gitattributes, if they give any protected path attributes that it does not have in `commit`.

    An attribute (line ends, an encoding, `ident`, a filter) changes what a check-out writes for the same content.
    """
    return bending(git, commit, changes, lambda names: _matching(names, protected))


def bending(
    git: Git, commit: str, changes: Sequence[Change], concerned: Callable[[Sequence[bytes]], list[bytes]]
) -> list[Change]:
    """The changes to .gitattributes, if they change what `commit` says of any of the concerned paths among its own."""
    files = [change for change in changes if change.name.rpartition(b"/")[2] == ATTRIBUTES]
    if not files:
        return []
    with _index_of(git, commit) as private:
        names = concerned(private.lines("ls-files", "-z"))
        before = _attributes(private, names)
        put(private, [(change.mode, change.id, change.name) for change in files])
        return files if _attributes(private, names) != before else []


def filtered(git: Git, commit: str, files: Sequence[Change], names: Sequence[bytes]) -> list[bytes]:
    """The paths, of `commit` or `names`, to which changed .gitattributes give a filter that `commit` does not."""
    with _index_of(git, commit) as private:
        paths = [*private.lines("ls-files", "-z"), *names]
        before = _filters(private, paths)
        put(private, [(change.mode, change.id, change.name) for change in files])
        return sorted(path for path, _ in _filters(private, paths) - before)


def _filters(git: Git, names: Sequence[bytes]) -> set[tuple[bytes, bytes]]:
    """Which driver each of the paths has, if any."""
    told = git.run("check-attr", "--cached", "-z", "filter", "--stdin", stdin=joined(names)).split(b"\0")
    return {(path, value) for path, value in zip(told[::3], told[2::3], strict=False) if value not in _NO_FILTER}


def _attributes(git: Git, names: Sequence[bytes]) -> list[bytes]:
    return git.lines("check-attr", "--cached", "-z", "--all", "--stdin", stdin=joined(names)) if names else []


def undo(git: Git, changes: Sequence[Change]) -> None:
    """Set the index entries back to what they were."""
    put(git, [(change.old_mode, change.old_id, change.name) for change in changes])


def put(git: Git, entries: Sequence[tuple[str, str, bytes]]) -> None:
    """Set index entries (mode, id, path). Removals come first: a file can replace a folder."""
    ordered = sorted(entries, key=lambda entry: entry[0] != NOTHING)
    lines = [f"{mode} {sha}\t".encode() + name for mode, sha, name in ordered]
    git.run("update-index", "-z", "--index-info", stdin=joined(lines))


def disturbed(store: Store, folder: Path, commit: str, protected: Sequence[str]) -> tuple[list[bytes], list[bytes]]:
    """The protected paths of a measuring copy whose content changed, and those that are other files than at first."""
    if is_overlay(folder):
        changed, touched = disturbed_upper(store, folder, commit)
        return _matching(changed, protected), _matching(touched, protected)
    tree, index = folder / TREE, folder / INDEX
    changed = changed_protected(store, tree, index=index, protected=protected)
    return changed, touched_protected(store, tree, index=index, protected=protected)


def changed_protected(store: Store, tree: Path, *, index: Path, protected: Sequence[str]) -> list[bytes]:
    """Protected paths of the checked-out commit whose content on disk changed or vanished since the checkout.

    Files that were added are no change: a run of the tests leaves caches behind.
    """
    with _private(store, tree, index) as git, openable_rules(tree):
        return _matching(git.lines("ls-files", "-z", "--modified"), protected)


def touched_protected(store: Store, tree: Path, *, index: Path, protected: Sequence[str]) -> list[bytes]:
    """Protected paths that are not the very files the checkout wrote, whatever they hold: swapped and back, perhaps."""
    with _private(store, tree, index) as git:
        names = _matching(git.lines("ls-files", "-z"), protected)
        same = set(untouched(git, tree, names))
    return [name for name in names if name not in same]


def added_protected(git: Git, top: Path, commit: str, protected: Sequence[str]) -> list[bytes]:
    """Files below `top` that are not in `commit` where the globs allow none, such as a conftest.py that a rung wrote.

    Folders (caches, installed packages), what interpreters compile, and environments are no such files.
    """
    closed = [glob for glob in protected if not glob.startswith(ADDABLE) and not glob.endswith(("/", "*.pyc"))]
    pruned = [f"--exclude={folder}" for folder in ENVIRONMENTS]
    with _index_of(git.at(top).with_env(GIT_WORK_TREE=top), commit) as private:
        return _matching(private.lines("ls-files", "-z", "--others", *pruned), closed)


@contextmanager
def _index_of(git: Git, commit: str) -> Iterator[Git]:
    """Git with an index of its own that holds a commit."""
    with tempfile.TemporaryDirectory() as folder:
        private = git.with_env(GIT_INDEX_FILE=Path(folder) / "index")
        private.run("read-tree", commit)
        yield private


def _matching(names: Sequence[bytes], protected: Sequence[str]) -> list[bytes]:
    spec = matcher(protected)
    return [name for name in names if matches(spec, name)]


@contextmanager
def _private(store: Store, tree: Path, index: Path) -> Iterator[Git]:
    with tempfile.TemporaryDirectory(dir=store.path) as folder:
        private = shutil.copy2(index, Path(folder) / "index")
        yield store.wary.at(tree).with_env(GIT_WORK_TREE=tree, GIT_INDEX_FILE=private)
