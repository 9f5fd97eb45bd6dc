"""Tampering: protected paths that changed while the rungs ran, or were swapped and swapped back."""

from __future__ import annotations

from pathlib import Path

from ...workflows.model.attempt import Measure
from ..changes import display
from ..places import Place
from ..protection import disturbed
from ..store import Store

MAX_NAMES = 20

HABITS = "touched-by-the-baseline"
"""Protected paths that the ladder itself writes anew on the unchanged tree (golden files): no candidate's doing."""


def tampered(store: Store, place: Place, request: Measure) -> tuple[str, ...]:
    """Name the protected paths whose content changed, or whose file is another one although the baseline's was not.

    A path that the baseline's own measurement rewrote is judged by its content alone.
    """
    if not request.contract.protected:
        return ()
    changed, touched = disturbed(store, place.folder, request.commit, request.contract.protected)
    habits = place.home.run(request.attempt.run) / HABITS
    if request.attempt.iteration == 0:
        habits.write_bytes(b"\0".join(touched))
        touched = []
    known = set(_read(habits))
    names = dict.fromkeys([*changed, *(name for name in touched if name not in known)])
    return tuple(display(name) for name in list(names)[:MAX_NAMES])


def _read(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\0") if path.exists() else []
