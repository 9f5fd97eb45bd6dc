"""Tampering: protected paths that changed or came while the rungs ran, or were swapped and swapped back."""

from __future__ import annotations

from pathlib import Path

from ...workflows.model.attempt import Measure
from ..changes import display
from ..git import GitError
from ..places import Place
from ..protection import UNTOLD, added_protected, disturbed
from ..store import Store
from ..workspaces.registry import provider_of

MAX_NAMES = 20

HABITS = "touched-by-the-baseline"
"""Protected paths that the ladder itself writes on the unchanged tree (golden files): no candidate's doing."""

BEFORE = "there-before"
"""Protected paths that carry and set-up added before the first rung."""


def note_additions(store: Store, place: Place, request: Measure) -> None:
    """Remember which protected paths carry and set-up added, before any rung runs. Idempotent."""
    if request.contract.protected and not (place.folder / BEFORE).exists():
        (place.folder / BEFORE).write_bytes(b"\0".join(_added(store, place, request)))


def tampered(store: Store, place: Place, request: Measure) -> tuple[str, ...]:
    """Name the protected paths whose content changed, that came, or whose file is another one.

    What the baseline's own measurement wrote anew is judged by its content alone, and what it added does not count.
    What keeps git from telling counts as changed.
    """
    try:
        return _tampered(store, place, request) if request.contract.protected else ()
    except GitError as error:
        if not error.overdue:
            raise
        return (display(UNTOLD),)


def _tampered(store: Store, place: Place, request: Measure) -> tuple[str, ...]:
    changed, touched = disturbed(store, place.folder, request.commit, request.contract.protected)
    there = set(_read(place.folder / BEFORE))
    touched += [name for name in _added(store, place, request) if name not in there]
    if request.attempt.iteration == 0:
        (place.home.run(request.attempt.run) / HABITS).write_bytes(b"\0".join(touched))
        touched = []
    known = habits(place) or frozenset()
    names = dict.fromkeys([*changed, *(name for name in touched if name not in known)])
    return tuple(display(name) for name in list(names)[:MAX_NAMES])


def habits(place: Place) -> frozenset[bytes] | None:
    """The protected paths that the ladder rewrote on the baseline; None as long as that was not measured."""
    path = place.home.run(place.key.run) / HABITS
    return frozenset(_read(path)) if path.exists() else None


def _added(store: Store, place: Place, request: Measure) -> list[bytes]:
    written = provider_of(place.folder).written(place.folder)
    return added_protected(store.wary, written, request.commit, request.contract.protected)


def _read(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\0") if path.exists() else []
