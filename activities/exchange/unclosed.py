"""Attempts that this host began for runs that may go to several hosts, and that nobody closed here."""

from __future__ import annotations

from ...workflows.model.attempt import CloseAttempt
from .. import artifacts
from ..attempts import CLOSED
from ..home import Home
from ..runs import attempt_key
from .arriving import MARK


def unclosed_attempts(home: Home) -> list[CloseAttempt]:
    """What would close each of them."""
    found = []
    for mark in sorted((home.root / "runs").glob(f"*/{MARK}")):
        run, prepared = mark.parent.name, artifacts.kept_prepared(home, mark.parent.name)
        if artifacts.is_closed(home, run) or prepared is None:
            continue
        folders = sorted((mark.parent / "attempts").glob("i*-c[1-9]*-b*"))
        found += [
            CloseAttempt(attempt=attempt_key(run, folder.name), store=prepared.store)
            for folder in folders
            if not (folder / CLOSED).exists()
        ]
    return found
