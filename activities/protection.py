"""Protected paths: which they are, putting them back, and seeing whether they changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
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


def matcher(globs: Sequence[str]) -> pathspec.GitIgnoreSpec:
    """A spec with the rules of a .gitignore; ask it with `matches`."""
    return pathspec.GitIgnoreSpec.from_lines(globs)


def matches(spec: pathspec.GitIgnoreSpec, name: bytes) -> bool:
    """Whether a path of a tree matches; a newline in a name cannot hide it from `**`."""
    return bool(spec.match_file(name.decode("utf-8", "surrogateescape").replace("\n", "_")))


def protected_changes(changes: Sequence[Change], protected: Sequence[str]) -> list[Change]:
    """Those of the changes whose path is protected."""
    spec = matcher(protected)
    return [change for change in changes if matches(spec, change.name)]


def undo(git: Git, changes: Sequence[Change]) -> None:
    """Set the index entries back to what they were. Removals come first: a file can replace a folder."""
    ordered = sorted(changes, key=lambda change: change.old_mode != NOTHING)
    lines = [f"{change.old_mode} {change.old_id}\t".encode() + change.name for change in ordered]
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


def _matching(names: Sequence[bytes], protected: Sequence[str]) -> list[bytes]:
    spec = matcher(protected)
    return [name for name in names if matches(spec, name)]


@contextmanager
def _private(store: Store, tree: Path, index: Path) -> Iterator[Git]:
    with tempfile.TemporaryDirectory(dir=store.path) as folder:
        private = shutil.copy2(index, Path(folder) / "index")
        yield store.git.at(tree).with_env(GIT_WORK_TREE=tree, GIT_INDEX_FILE=private)
