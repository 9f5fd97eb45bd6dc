"""What differs between two trees of the store, and how the user's files compare with it in their own git's eyes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from .changes import GITLINK, NOTHING, Change, parse_raw
from .git import Git, GitError
from .marks import Mark
from .repository import Repository
from .store import Store

_ATTRIBUTES = ".gitattributes"
_SETTINGS = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.ignoreStat", "GIT_CONFIG_VALUE_0": "false"}
"""With the user's own `core.ignoreStat` git would believe that every file is as its index says."""


@dataclass(frozen=True)
class Entry:
    """One entry of a tree.

    Attributes:
        mode: six octal digits.
        sha: the object.
    """

    mode: str
    sha: str

    @property
    def regular(self) -> bool:
        """A file, not a link or a submodule."""
        return self.mode.startswith("100")

    @property
    def executable(self) -> bool:
        """Whether it is a file that may be run."""
        return self.mode == "100755"


@dataclass(frozen=True)
class Move:
    """A path whose entries differ; None where it does not exist.

    Attributes:
        path: below the top, undecodable bytes as surrogates.
        old: its entry in the tree to come from.
        new: its entry in the tree to go to.
    """

    path: str
    old: Entry | None
    new: Entry | None

    @property
    def submodule(self) -> bool:
        """Whether a submodule link comes, goes or moves."""
        return any(entry is not None and entry.mode == GITLINK for entry in (self.old, self.new))

    @property
    def chmod(self) -> bool:
        """Whether both are files that differ in the executable bit."""
        return bool(self.old and self.new and self.old.regular and self.new.regular and self.old.mode != self.new.mode)


def differences(git: Git, old: str, new: str) -> list[Move]:
    """What moves between the trees of two commits, by path."""
    trees = f"{old}^{{tree}}", f"{new}^{{tree}}"
    return [_move(c) for c in parse_raw(git.lines("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", *trees))]


def _move(change: Change) -> Move:
    return Move(os.fsdecode(change.name), _entry(change.old_mode, change.old_id), _entry(change.mode, change.id))


def _entry(mode: str, sha: str) -> Entry | None:
    return None if mode == NOTHING else Entry(mode, sha)


@dataclass(frozen=True)
class UserTree:
    """The user's tree seen through their settings and filters, with an index and objects that are not theirs.

    Attributes:
        repository: the user's.
        store: holds the objects of both trees; whatever git might write goes there, too.
        scratch: an empty folder, for a private index and for staging.
    """

    repository: Repository
    store: Store
    scratch: Path

    @property
    def git(self) -> Git:
        """Git in the user's tree; writes nothing into their repository."""
        return self.repository.git.with_env(
            GIT_DIR=self.repository.git_dir,
            GIT_WORK_TREE=self.repository.top,
            GIT_INDEX_FILE=self.scratch / "index",
            GIT_OBJECT_DIRECTORY=self.store.git_dir / "objects",
            GIT_NO_REPLACE_OBJECTS="1",
            **_SETTINGS,
        )

    def survey(self, moves: Iterable[Move], marks: Mapping[str, Mark | None]) -> tuple[list[Move], list[str]]:
        """Tell what is still to be moved and the paths that are neither old nor new; the rest is new already.

        `marks` says what lay at each path before this question: a later edit is noticed when the path moves.
        """
        moves = list(moves)
        not_old = self.unlike({move.path: move.old for move in moves}, marks)
        edited = self.unlike({move.path: move.new for move in moves if move.path in not_old}, marks)
        waiting = [m for m in moves if m.path not in not_old and not _chmodded(m, marks[m.path])]
        return waiting, [move.path for move in moves if move.path in edited]

    def unlike(self, wanted: Mapping[str, Entry | None], marks: Mapping[str, Mark | None]) -> set[str]:
        """The paths that do not show the wanted entry (None: no file) by content, type and mode in git's eyes."""
        entries = {path: entry for path, entry in wanted.items() if entry is not None}
        taken = {path for path, entry in wanted.items() if entry is None and not _free(marks[path])}
        return taken | (self._differing(entries) if entries else set())

    def stage(self, moves: list[Move], new: str) -> Path:
        """Write the new contents into a folder as a check-out would, by the attributes of the new tree."""
        staging = self.scratch / "new"
        staging.mkdir()
        entries = {move.path: move.new for move in moves if move.new is not None}
        git = self.git
        if any(PurePosixPath(path).name == _ATTRIBUTES for path in (move.path for move in moves)):
            entries |= self._attributes(new)
            git = replace(git.with_env(GIT_WORK_TREE=staging), cwd=staging)
        self._fill(entries)
        git.run("checkout-index", "--all", f"--prefix={staging}/")
        return staging

    def size(self, moves: Iterable[Move]) -> int:
        """How many bytes the new contents take as git stores them, uncompressed."""
        names = "".join(f"{move.new.sha}\n" for move in moves if move.new is not None)
        return sum(
            map(
                int,
                self.store.git.text("cat-file", "--batch-check=%(objectsize)", stdin=names.encode()).split(),
            )
        )

    def _differing(self, entries: Mapping[str, Entry]) -> set[str]:
        self._fill(entries)
        refresh = ("update-index", "-q", "--refresh")
        status, _, said = self.git.attempt(*refresh)
        if status > 1:  # 1 only says that some differ
            raise GitError(refresh, status, said)
        return {os.fsdecode(path) for path in self.git.lines("diff-files", "-z", "--name-only")}

    def _fill(self, entries: Mapping[str, Entry | None]) -> None:
        (self.scratch / "index").unlink(missing_ok=True)
        rows = [f"{entry.mode} {entry.sha}\t{path}\0" for path, entry in entries.items() if entry is not None]
        self.git.run("update-index", "-z", "--index-info", stdin=os.fsencode("".join(rows)))

    def _attributes(self, commit: str) -> dict[str, Entry]:
        rows = (os.fsdecode(row).partition("\t") for row in self.store.git.lines("ls-tree", "-r", "-z", commit))
        found = ((facts.split(), path) for facts, _, path in rows if PurePosixPath(path).name == _ATTRIBUTES)
        return {path: Entry(mode, sha) for (mode, _, sha), path in found}


def _free(mark: Mark | None) -> bool:
    """Whether no file is at a path: nothing, or a folder (git knows none)."""
    return mark is None or stat.S_ISDIR(mark.mode)


def _chmodded(move: Move, mark: Mark | None) -> bool:
    """Whether only the executable bit differs and stands already, where git is told not to look at it."""
    only_mode = move.chmod and move.old and move.new and move.old.sha == move.new.sha
    return bool(only_mode and mark and move.new and bool(mark.mode & stat.S_IXUSR) == move.new.executable)
