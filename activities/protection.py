"""Protected paths: which they are, putting them back, and seeing whether they changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pathspec

from .changes import NOTHING, joined, parse_raw
from .git import Git
from .recording import untouched
from .store import Store


def matcher(globs: Sequence[str]) -> pathspec.GitIgnoreSpec:
    """A spec with the rules of a .gitignore; ask it with `matches`."""
    return pathspec.GitIgnoreSpec.from_lines(globs)


def matches(spec: pathspec.GitIgnoreSpec, name: bytes) -> bool:
    """Whether a path of a tree matches; a newline in a name cannot hide it from `**`."""
    return bool(spec.match_file(name.decode("utf-8", "surrogateescape").replace("\n", "_")))


def protected_index(git: Git, commit: str, protected: Sequence[str]) -> list[bytes]:
    """In the index of `git`, put every protected path back to its entry in `commit`; return those that differed.

    Added paths go, changed and deleted ones come back. The work tree is not touched.
    """
    spec = matcher(protected)
    raw = git.lines("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", commit)
    changes = [change for change in parse_raw(raw) if matches(spec, change.name)]
    restore_entries(git, [(change.old_mode, change.old_id, change.name) for change in changes])
    return [change.name for change in changes]


def restore_entries(git: Git, entries: Sequence[tuple[str, str, bytes]]) -> None:
    """Set index entries (mode, id, name). Mode NOTHING removes; that comes first: a file can replace a folder."""
    lines = [f"{mode} {oid}\t".encode() + name for mode, oid, name in sorted(entries, key=lambda e: e[0] != NOTHING)]
    if lines:
        git.run("update-index", "-z", "--index-info", stdin=joined(lines))


def changed_protected(store: Store, tree: Path, *, index: Path, protected: Sequence[str]) -> list[bytes]:
    """Protected paths of the checked-out commit whose content on disk changed or vanished since the checkout.

    Files that were added are no change: a run of the tests leaves caches behind.
    """
    with _private(store, tree, index) as git:
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
