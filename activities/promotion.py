"""Promotion: bring the user's tree or a branch to the result, all or nothing; a rerun finishes what was begun."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..workflows.model.base import Sha
from ..workflows.model.goal import is_url
from ..workflows.model.promotion import Promote, PromoteMode, PromoteTarget, Promotion
from ..workflows.model.reason import Datum, PromotionReason, Reason
from . import renames
from .branches import publish
from .changes import display
from .differences import Move, UserTree, differences
from .git import GitError
from .home import Home
from .journal import NO_SPACE, ConflictError, Journal, Plan
from .marks import read_marks
from .planning import Layout, steps
from .repository import Repository, inspect
from .store import Store

PATIENCE = 30.0
"""Seconds to wait for another promotion into the same working tree."""

_NAMED = 10
_ROOM = 1 << 20  # for the index, the plan and what filters add
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


def promote(home: Home, request: Promote) -> Promotion:
    """Move the user's tree or a branch to the result; a refusal is a value and leaves all as it was."""
    if request.target.mode is PromoteMode.NONE:
        return Promotion(target=request.target)
    if is_url(request.repo):
        cause = f"{request.repo} has no working tree here"
        reason = Reason[PromotionReason](code=PromotionReason.UNSUPPORTED, data={"cause": cause})
        return Promotion(target=request.target, refused=reason)
    repository, store = inspect(Path(request.repo)), Store(home, request.store)
    if request.target.mode is PromoteMode.BRANCH:
        return publish(repository, store, request)
    try:
        return _into_worktree(repository, store, request)
    except _RefusalError as refusal:
        return Promotion(target=request.target, refused=refusal.reason)


def restore(home: Home, *, run: str, repo: str, store: str, old: Sha, new: Sha) -> Promotion:
    """Bring the start (`old`) back where the result (`new`) was promoted: the same rules, trees swapped.

    Dirty and untracked files come back as they were recorded; through a filter or a change of line endings, as the
    user's git checks them out.
    """
    return promote(home, Promote(run=run, repo=repo, store=store, old=new, new=old, target=PromoteTarget()))


class _RefusalError(Exception):
    def __init__(self, code: PromotionReason, paths: Iterable[str] = (), **data: Datum) -> None:
        super().__init__(code)
        named = [display(path) for path in paths]
        facts: dict[str, Datum] = {"paths": tuple(named[:_NAMED]), "count": len(named)} if named else {}
        self.reason = Reason[PromotionReason](code=code, data={**facts, **data})


def _into_worktree(repository: Repository, store: Store, request: Promote) -> Promotion:
    if repository.operation:
        raise _RefusalError(PromotionReason.IN_PROGRESS, operation=repository.operation)
    try:
        with _turn(store.path, repository.top):
            paths = _Advance(repository, store, request).run()
    except OSError as error:
        code = _code(error)
        if code is None:
            raise
        raise _RefusalError(code, path=display(error.filename or repository.top), cause=error.strerror) from error
    return Promotion(target=request.target, tree=store.tree_of(request.new), paths=paths)


class _Advance:
    """One promotion into a working tree, while its lock is held."""

    def __init__(self, repository: Repository, store: Store, request: Promote) -> None:
        self.repository = repository
        self.top = repository.top
        self.store = store
        self.request = request
        self.journal = _journal(repository, store, request.run)

    def run(self) -> int:
        """Finish what an earlier attempt began, then move what is left; how many paths moved in all."""
        moved = self._recover()
        try:
            plan = self._prepare()
            if plan.steps:
                self._finish(plan)
            return moved + _paths(plan)
        finally:
            if self.journal.read() is None:
                self.journal.drop()

    def _recover(self) -> int:
        plan = self.journal.read()
        with suppress(_RefusalError, OSError):  # it was taken back; the survey that follows names what is in the way
            if plan is not None:
                self._finish(plan)
                return _paths(plan) if plan.new == self.request.new else 0
        return 0

    def _prepare(self) -> Plan:
        """Everything up to the commit point, which it does not pass."""
        old, new = self.request.old, self.request.new
        moves = differences(self.store.git, old, new)
        submodules = [move.path for move in moves if move.submodule]
        if submodules:
            raise _RefusalError(PromotionReason.UNSUPPORTED, submodules, cause="submodule links differ")
        self.journal.begin()
        tree = UserTree(self.repository, self.store, self.journal.scratch())
        marks = read_marks(self.top, (move.path for move in moves))
        with self._explained():
            waiting, edited = tree.survey(moves, marks)
        layout = Layout.of(self.top, waiting, marks)
        if edited or layout.strangers:
            raise _RefusalError(PromotionReason.EDITED, [*edited, *layout.strangers])
        _check_writable(layout.folders())
        if not waiting:
            return Plan(old, new, ())
        return Plan(old, new, steps(layout, marks, self._stage(tree, waiting), self.journal))

    def _stage(self, tree: UserTree, waiting: list[Move]) -> Path:
        room = tree.size(waiting) + _ROOM
        self.journal.reserve(room)
        with self._explained(room):
            return tree.stage(waiting, self.request.new)

    def _finish(self, plan: Plan) -> None:
        if self.journal.read() is None:
            self.journal.commit(plan)
        self._apply(plan)
        try:
            self._verify(plan)
        except (_RefusalError, OSError):
            self.journal.take_back(plan)
            self.journal.drop()
            raise
        self.journal.prune(plan)
        self.journal.drop()

    def _apply(self, plan: Plan) -> None:
        try:
            self.journal.apply(plan)
        except ConflictError as conflict:
            self.journal.drop()
            raise _RefusalError(PromotionReason.EDITED, [conflict.path]) from conflict
        except OSError:
            self.journal.drop()
            raise

    def _verify(self, plan: Plan) -> None:
        """Every moved path shows the new tree in the eyes of the user's git, or this is refused."""
        put = {step.path: step.after for step in plan.steps}
        wanted = {m.path: m.new for m in differences(self.store.git, plan.old, plan.new) if m.path in put}
        marks = read_marks(self.top, wanted)
        tree = UserTree(self.repository, self.store, self.journal.scratch())
        with self._explained():
            wrong = tree.unlike(wanted, marks)
        if edited := sorted(path for path in wrong if marks[path] != put[path]):
            raise _RefusalError(PromotionReason.EDITED, edited)
        if wrong:
            raise _RefusalError(PromotionReason.UNSUPPORTED, sorted(wrong), cause="the filters change these contents")

    @contextmanager
    def _explained(self, room: int = _ROOM) -> Iterator[None]:
        """Git says little of why it could not write: look for the room it needed, then quote it."""
        try:
            yield
        except GitError as error:
            self.journal.reserve(room)
            raise _RefusalError(PromotionReason.UNSUPPORTED, cause=error.stderr) from error


def _journal(repository: Repository, store: Store, run: str) -> Journal:
    in_store = store.path / "journal" / f"{run}-{_key(repository.top)}"
    for folder in (in_store, repository.git_dir / f"orch-journal-{run}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if renames.reaches(folder.parent, repository.top):
            return Journal(folder, repository.top)
    cause = "neither the state directory nor the git directory is on the working tree's file system"
    raise _RefusalError(PromotionReason.UNSUPPORTED, cause=cause)


def _check_writable(folders: Iterable[Path]) -> None:
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
            read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            number = errno.EROFS if read_only else errno.EACCES
            raise OSError(number, os.strerror(number), str(folder))


def _paths(plan: Plan) -> int:
    marks = (step.before or step.after for step in plan.steps)
    return sum(mark is not None and not stat.S_ISDIR(mark.mode) for mark in marks)


def _code(error: OSError) -> PromotionReason | None:
    if error.errno in NO_SPACE:
        return PromotionReason.NO_SPACE
    return PromotionReason.NOT_WRITABLE if error.errno in _NOT_WRITABLE else None


def _key(top: Path) -> str:
    """A name for a working tree: several may share a store."""
    return hashlib.sha256(os.fsencode(top)).hexdigest()[:16]


@contextmanager
def _turn(folder: Path, top: Path) -> Iterator[None]:
    """Hold the lock of a working tree; the kernel gives it back when the holder dies."""
    deadline = time.monotonic() + PATIENCE
    with (folder / f"promote-{_key(top)}.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _RefusalError(PromotionReason.BUSY, path=display(top)) from None
                time.sleep(0.05)
        yield
