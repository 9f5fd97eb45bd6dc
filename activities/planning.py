"""From moves to the steps of a journal: what leaves, is swapped or arrives, which folders must go or come."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path, PurePosixPath

from .differences import Move
from .journal import Journal, Kind, Step
from .marks import Mark

_ANY_RUN = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


@dataclass
class Layout:
    """How the waiting moves lie on the disk.

    Attributes:
        top: the user's working tree.
        leaving: files to be deleted.
        swapped: files to be exchanged.
        arriving: files to be added.
        emptied: folders in the way of a file, the deepest first; they hold nothing but leaving files.
        missing: folders to be made, the outermost first.
        strangers: files of the user, or links, in the way of something that arrives.
    """

    top: Path
    leaving: dict[str, Move] = field(default_factory=dict)
    swapped: dict[str, Move] = field(default_factory=dict)
    arriving: dict[str, Move] = field(default_factory=dict)
    emptied: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    strangers: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, top: Path, waiting: Iterable[Move], marks: Mapping[str, Mark | None]) -> Layout:
        """Sort the moves and look at the folders round those that arrive."""
        layout = cls(top)
        for move in waiting:
            group = layout.leaving if not move.new else layout.swapped if move.old else layout.arriving
            group[move.path] = move
        for path in layout.arriving:
            mark = marks[path]
            if mark is not None and stat.S_ISDIR(mark.mode):
                layout._make_way(path)
            layout._need_parents(path)
        return layout

    def folders(self) -> set[Path]:
        """The existing folders in which a name will move."""
        return {self._existing(path) for path in (*self.leaving, *self.swapped, *self.arriving, *self.emptied)}

    def _existing(self, path: str) -> Path:
        folders = takewhile(_is_folder, (self.top / parent for parent in _parents(path)))
        return max(folders, key=lambda folder: len(folder.parts), default=self.top)

    def _make_way(self, path: str) -> None:
        for inner, is_folder in _below(self.top, path):
            if is_folder:
                self.emptied[inner] = None
            elif inner not in self.leaving:
                self.strangers[inner] = None
        self.emptied[path] = None

    def _need_parents(self, path: str) -> None:
        missing = False
        for parent in _parents(path):
            folder = self.top / parent
            if not missing and _is_folder(folder):
                continue
            if not missing and parent not in self.leaving and os.path.lexists(folder):
                self.strangers[parent] = None
                return
            missing = True  # whatever a link on the way shows below itself is not the user's tree
            self.missing[parent] = None


def steps(layout: Layout, marks: Mapping[str, Mark | None], staging: Path, journal: Journal) -> tuple[Step, ...]:
    """Move the staged contents into slots and list the renames: out, folders out, swaps, folders in, in."""
    slots = map(str, count())
    return (
        *(Step(Kind.OUT, path, next(slots), marks[path], None) for path in layout.leaving),
        *(Step(Kind.OUT, path, next(slots), _empty(layout.top / path), None) for path in layout.emptied),
        *(_swap(move, marks[path], staging, journal, next(slots)) for path, move in layout.swapped.items()),
        *(_new_folder(path, journal, next(slots)) for path in layout.missing),
        *(_arrival(path, staging, journal, next(slots)) for path in layout.arriving),
    )


def _swap(move: Move, before: Mark | None, staging: Path, journal: Journal, slot: str) -> Step:
    (staging / move.path).rename(journal.slots / slot)
    _dress(journal.slots / slot, move, before)
    return Step(Kind.SWAP, move.path, slot, before, journal.mark(slot))


def _new_folder(path: str, journal: Journal, slot: str) -> Step:
    (journal.slots / slot).mkdir()
    return Step(Kind.IN, path, slot, None, _empty(journal.slots / slot))


def _arrival(path: str, staging: Path, journal: Journal, slot: str) -> Step:
    (staging / path).rename(journal.slots / slot)
    return Step(Kind.IN, path, slot, None, journal.mark(slot))


def _dress(slot: Path, move: Move, before: Mark | None) -> None:
    """Keep the replaced file's permissions; only the executable bit is git's, and only where it differs."""
    if not (before and stat.S_ISREG(before.mode) and move.new and move.new.regular):
        return
    mode = stat.S_IMODE(before.mode)
    if move.chmod:
        mode = mode | (mode & 0o444) >> 2 if move.new.executable else mode & ~_ANY_RUN
    slot.chmod(mode)


def _empty(folder: Path) -> Mark:
    found = folder.lstat()
    return Mark(found.st_ino, 0, 0, found.st_mode)


def _parents(path: str) -> list[str]:
    """The folders of a path below the top, outermost first."""
    return [str(parent) for parent in reversed(PurePosixPath(path).parents)][1:]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _below(top: Path, path: str) -> Iterator[tuple[str, bool]]:
    """Everything in a folder, contents before the folder that holds them, and whether it is a folder."""
    with os.scandir(top / path) as entries:
        for entry in entries:
            inner, is_folder = f"{path}/{entry.name}", entry.is_dir(follow_symlinks=False)
            if is_folder:
                yield from _below(top, inner)
            yield inner, is_folder
