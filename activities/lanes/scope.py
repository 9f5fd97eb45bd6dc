"""Whether a manifest keeps to what the frozen plan gives its lane, and fits the tree that it is laid on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pathspec

from ...workflows.model.round.plan import RoundPlan
from ...workflows.model.round.ticket import Cause
from ..changes import GITLINK, display
from ..protection import ADDABLE, matcher, matches
from ..workspaces.folding import folded
from .desk import protected_globs
from .incumbent import Laid, folders_of, joined_path
from .manifest import Entry, Flaw, malformed
from .names import path_flaw


@dataclass(frozen=True)
class Scope:
    """Who may write which paths.

    Attributes:
        round: the round.
        lane: the lane.
        own: what the lane may write.
        others: what each other lane may write.
        protected: what nobody may change.
        closed: where nobody may add anything, either.
    """

    round: str
    lane: str
    own: pathspec.GitIgnoreSpec
    others: tuple[tuple[str, pathspec.GitIgnoreSpec], ...]
    protected: pathspec.GitIgnoreSpec
    closed: pathspec.GitIgnoreSpec

    @classmethod
    def of(cls, plan: RoundPlan, lane: str) -> Scope:
        """A lane's scope by the frozen plan, which has that lane."""
        globs = {each.id: matcher(each.globs) for each in plan.lanes}
        protected = protected_globs(plan)
        closed = [glob for glob in protected if not glob.startswith(ADDABLE)]
        own = globs.pop(lane)
        return cls(plan.id, lane, own, tuple(globs.items()), matcher(protected), matcher(closed))

    def path_flaw(self, path: bytes, *, known: bool) -> Flaw | None:
        """Why a path is not the lane's; `known` says whether the incumbent has it."""
        if matches(self.protected if known else self.closed, path):
            return Flaw(Cause.PROTECTED, f"{display(path)} is protected")
        for lane, globs in self.others:
            if matches(globs, path):
                return Flaw(Cause.OUT_OF_SCOPE, f"{display(path)} belongs to the lane {lane}")
        if not matches(self.own, path):
            return Flaw(Cause.OUT_OF_SCOPE, f"{display(path)} matches none of the lane's globs")
        return None


def manifest_flaw(scope: Scope, laid: Laid) -> Flaw | None:
    """Why a manifest is refused before any content is looked at; None when nothing is wrong with it."""
    return next(_flaws(scope, laid), None)


def _flaws(scope: Scope, laid: Laid) -> Iterator[Flaw]:
    manifest = laid.manifest
    if (manifest.round, manifest.lane) != (scope.round, scope.lane):
        yield malformed("the manifest is another lane's")
    if not manifest.entries:
        yield Flaw(Cause.NO_CHANGE, "the manifest names no path")
    for entry in manifest.entries:
        if flaw := path_flaw(entry) or _in_submodule(laid, entry) or _foreign(scope, laid, entry):
            yield flaw
    yield from crossings(laid)


def crossings(laid: Laid) -> Iterator[Flaw]:
    """What is wrong with the paths beside those that stay: whoever wrote either, both cannot be in one checkout."""
    yield from _conflicts(laid)
    yield from _collisions(laid)


def _in_submodule(laid: Laid, entry: Entry) -> Flaw | None:
    if any(laid.was(path, GITLINK) for path in (*folders_of(entry.path), entry.path)):
        return Flaw(Cause.SUBMODULE, f"{display(entry.path)} is a submodule's")
    return None


def _foreign(scope: Scope, laid: Laid, entry: Entry) -> Flaw | None:
    there = laid.tree.at(entry.path)
    flaw = scope.path_flaw(entry.path, known=there is not None)
    if flaw is None and entry.deleted and (there is None or there.is_tree):
        return malformed(f"{display(entry.path)} is deleted, but is no file of the incumbent")
    return flaw


def _conflicts(laid: Laid) -> Iterator[Flaw]:
    """Paths that are file and folder at once."""
    for path in laid.written:
        for folder in folders_of(path):
            there = laid.tree.at(folder)
            if folder in laid.written or (there and not there.is_tree and folder not in laid.deleted):
                yield malformed(f"{display(folder)} is a file and has {display(path)} in it")
        there = laid.tree.at(path)
        if there and there.is_tree and laid.remains(path, there):
            yield malformed(f"{display(path)} is a file, and a folder with files in it")


def _collisions(laid: Laid) -> Iterator[Flaw]:
    """New names that are one with another on a disk that folds case."""
    spelled, present = dict[str, bytes](), dict[bytes, dict[str, list[bytes]]]()
    paths = sorted(laid.written.keys() | laid.folders)
    known = {path for path in paths if laid.tree.at(path)}
    for path in paths:
        if (other := spelled.setdefault(folded(path), path)) != path and not known.issuperset((path, other)):
            yield _collision(path, other)
        if path in known:
            continue
        folder, _, name = path.rpartition(b"/")
        if folder not in present:
            present[folder] = _by_folded(laid.tree.folder(folder))
        for other in present[folder].get(folded(name), ()):
            there = laid.tree.at(joined_path(folder, other))
            if other != name and there and laid.remains(joined_path(folder, other), there):
                yield _collision(path, joined_path(folder, other))


def _by_folded(names: Iterable[bytes]) -> dict[str, list[bytes]]:
    found = dict[str, list[bytes]]()
    for name in names:
        found.setdefault(folded(name), []).append(name)
    return found


def _collision(path: bytes, other: bytes) -> Flaw:
    return Flaw(Cause.CASE_COLLISION, f"{display(path)} and {display(other)} are one file on disks that fold names")
