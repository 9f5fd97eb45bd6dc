"""What may go: one thing each, with its size, its age and the step that lets go of it; and which of them do go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class KeptError(Exception):
    """Why a thing was left where it is after all."""


@dataclass(frozen=True)
class Found:
    """One thing that no live run needs.

    Attributes:
        kind: one of `KINDS`.
        path: where it lies.
        bytes: how much room it gives back.
        used: Unix time of its last use.
        remove: lets go of it and returns what it renamed away, to be deleted; raises KeptError or OSError.
        run: whose it is; empty for no single run's.
        store: the key of the store it belongs to; empty without one.
        spare: whether it may still be of use to somebody, so that it goes only by age or for want of room.
    """

    kind: str
    path: Path
    bytes: int
    used: float
    remove: Callable[[], Iterable[Path]]
    run: str = ""
    store: str = ""
    spare: bool = False


@dataclass(frozen=True)
class Collected:
    """One thing that went, would go, or could not go.

    Attributes:
        kind: one of `KINDS`.
        path: where it lies or lay.
        bytes: how much room it gives, or gave, back.
        flaw: why it is still there although it was to go; empty when nothing went wrong.
    """

    kind: str
    path: Path
    bytes: int
    flaw: str = ""


KINDS = {
    "run": "what dead runs still held",
    "slot": "slots and ports of dead runs",
    "workspace": "workspaces of closed runs",
    "shell": "workspaces of `orch shell` that was killed",
    "trash": "renamed away before, not yet deleted",
    "result": "candidates and logs of old runs",
    "ref": "pins of runs that are gone",
    "base": "base checkouts that no workspace uses",
    "object": "objects that no run pins",
    "linked": "objects the user's repository no longer shares",
    "store": "stores of repositories without runs",
    "log": "rotated logs and backups of the engine",
    "exchange": "leftovers of exchanges with other hosts",
}
"""The kinds of things, in the order in which they are shown."""


def choose(found: Iterable[Found], *, older_s: float | None, want: float, now: float) -> list[Found]:
    """Those that go: all that is of no use, what is spare and older than `older_s`, and more until `want` bytes go.

    For want of room the spare ones go oldest first; `want` is what is missing now, zero or less for nothing.
    """
    everything = list(found)
    chosen = [one for one in everything if not one.spare or (older_s is not None and now - one.used >= older_s)]
    rest = sorted((one for one in everything if one not in chosen), key=lambda one: (one.used, str(one.path)))
    return [*chosen, *_until(rest, want - sum(one.bytes for one in chosen))]


def _until(rest: Sequence[Found], missing: float) -> list[Found]:
    taken = list[Found]()
    for one in rest:
        if missing <= 0:
            break
        if one.bytes:
            taken.append(one)
            missing -= one.bytes
    return taken
