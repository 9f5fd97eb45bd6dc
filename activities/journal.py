"""The journal of one promotion: a plan of renames, carried out or taken back as a whole, wherever it is killed.

Every step is one rename between a path of the user's tree and a numbered slot in the journal, so each path shows
its old or its new state at any instant, and the slots alone tell which steps are done. Writing `plan.json` is the
commit point: before it nothing of the user was touched, after it `apply` is also the recovery.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import tempfile
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from ..workflows.errors import HostFaultError
from . import renames
from .marks import Mark, look, look_up, opened, place
from .renames import Spot

PLAN = "plan.json"
NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class Kind(StrEnum):
    """The three renames: out of the tree, swapped with a slot, into the tree."""

    OUT = "out"
    SWAP = "swap"
    IN = "in"


@dataclass(frozen=True)
class Step:
    """One rename.

    Attributes:
        kind: which.
        path: the path below the top, undecodable bytes as surrogates.
        slot: the name in the journal.
        before: what lies at the path until the step; None when it must be free.
        after: what lies in the slot until the step and at the path from then on; None when nothing does.
    """

    kind: Kind
    path: str
    slot: str
    before: Mark | None
    after: Mark | None


@dataclass(frozen=True)
class Plan:
    """All steps, in the order of their execution, from the tree of commit `old` to that of `new`."""

    old: str
    new: str
    steps: tuple[Step, ...]

    def dump(self) -> bytes:
        """As JSON; surrogates are escaped."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, data: bytes) -> Plan:
        """From JSON."""
        document = json.loads(data)
        return cls(document["old"], document["new"], tuple(_step(**step) for step in document["steps"]))


class ConflictError(Exception):
    """Somebody changed a path while it was being promoted; all was taken back but what they changed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Journal:
    """A folder on the mount of the user's tree, with `slots/`, the plan, and room to prepare one."""

    def __init__(self, folder: Path, top: Path) -> None:
        self.folder = folder
        self.top = top

    @property
    def slots(self) -> Path:
        """Where staged contents wait and old contents are kept until the plan is dropped."""
        return self.folder / "slots"

    def begin(self) -> None:
        """Clear what an attempt without a plan left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.slots.mkdir(parents=True)

    def scratch(self) -> Path:
        """A new folder for git to write in: a git that outlived a killed attempt still writes into its own."""
        return Path(tempfile.mkdtemp(prefix="scratch-", dir=self.folder))

    def reserve(self, size: int) -> None:
        """Prove that `size` bytes have room here; OSError (no space, quota) when they have not."""
        probe = self.folder / "room"
        with probe.open("wb") as stream:
            try:
                os.posix_fallocate(stream.fileno(), 0, size)
            except OSError as error:
                if error.errno in NO_SPACE:  # anything else: this file system cannot tell
                    raise
            finally:
                probe.unlink()

    def mark(self, slot: str) -> Mark | None:
        """What lies in a slot."""
        with opened(self.slots) as slots:
            return look(Spot(slots, slot))

    def commit(self, plan: Plan) -> None:
        """Make the plan durable: from here on it is finished or taken back, whatever happens."""
        draft = self.folder / (PLAN + ".draft")
        draft.write_bytes(plan.dump())
        with opened(self.folder) as folder:
            renames.flush(folder)
            draft.rename(self.folder / PLAN)
            os.fsync(folder)

    def read(self) -> Plan | None:
        """The committed plan, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            return Plan.load((self.folder / PLAN).read_bytes())
        return None

    def apply(self, plan: Plan) -> None:
        """Carry out what is not done yet; on a conflict or a fault take everything back and raise it."""
        with opened(self.top) as top, opened(self.slots) as slots:
            try:
                _carry_out(plan, top, slots)
                renames.flush(top)
            except (ConflictError, OSError):
                self.take_back(plan)
                raise

    def take_back(self, plan: Plan) -> None:
        """Undo every step but those whose path somebody changed since: that stays theirs.

        HostFaultError when the host forbids it; the plan stays, so the next `apply` heals it.
        """
        try:
            with opened(self.top) as top, opened(self.slots) as slots:
                _take_back(plan, top, slots)
        except OSError as error:
            hint = "mend that and promote again: it is finished or taken back then"
            raise HostFaultError(f"promotion stopped half-way in {self.top}: {error}", hint=hint) from error

    def drop(self) -> None:
        """Forget the plan, then its files."""
        (self.folder / PLAN).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def prune(self, plan: Plan) -> None:
        """Remove the folders that became empty because their files left."""
        left = {parent for step in plan.steps if step.kind is Kind.OUT for parent in PurePosixPath(step.path).parents}
        with opened(self.top) as top:
            for folder in sorted(map(str, left - {PurePosixPath()}), key=len, reverse=True):
                with contextlib.suppress(OSError), place(top, folder) as spot:
                    os.rmdir(spot.name, dir_fd=spot.folder)


def _carry_out(plan: Plan, top: int, slots: int) -> None:
    for step in plan.steps:
        slot = Spot(slots, step.slot)
        _settle(step, top, slot)
        if look(slot) == step.after and not _shift(step, top, slot, forward=True):
            raise ConflictError(step.path)
    for step in plan.steps:
        if not _holds(step, top, Spot(slots, step.slot)):
            raise ConflictError(step.path)


def _take_back(plan: Plan, top: int, slots: int) -> None:
    for step in reversed(plan.steps):
        slot = Spot(slots, step.slot)
        _settle(step, top, slot)
        if look(slot) != step.after:
            _shift(step, top, slot, forward=False)


def _shift(step: Step, top: int, slot: Spot, *, forward: bool) -> bool:
    """Do or undo one step; False, with nothing changed, when something unexpected lies at the path."""
    expected = step.before if forward else step.after
    try:
        with place(top, step.path) as spot:
            if look(spot) != expected:
                return False
            _turn(step.kind, spot, slot, forward=forward)
            if look(slot) == expected:  # what came out is what was checked, not what an editor saved just now
                return True
            _turn(step.kind, spot, slot, forward=not forward)
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        error.filename = step.path
        raise
    return False


def _turn(kind: Kind, spot: Spot, slot: Spot, *, forward: bool) -> None:
    if kind is Kind.SWAP:
        renames.exchange(slot, spot)
    elif (kind is Kind.OUT) is forward:
        renames.move(spot, slot)
    else:
        renames.move(slot, spot)


def _settle(step: Step, top: int, slot: Spot) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), place(top, step.path) as spot:
        renames.settle(slot, spot)


def _holds(step: Step, top: int, slot: Spot) -> bool:
    """Whether a done step is as it was left: nobody wrote into the old file or over the new one."""
    if look(slot) != step.before:
        return False
    if step.after is None:
        return True  # a later step may have filled the path
    found = look_up(top, step.path)
    return found is not None and (stat.S_ISDIR(found.mode) or found == step.after)


def _step(kind: str, path: str, slot: str, before: list[int] | None, after: list[int] | None) -> Step:
    return Step(Kind(kind), path, slot, Mark(*before) if before else None, Mark(*after) if after else None)
