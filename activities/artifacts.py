"""The files of a run's folder: what it was asked, its ledger, and the mark that it is closed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from ..workflows.model.event import EVENT, Event
from ..workflows.model.goal import PrepareRun, RunPrepared, is_url
from ..workflows.model.round.plan import RoundPlan
from .home import Home

REQUEST = "request.json"
PREPARED = "prepared.json"
PLAN = "round-plan.json"
LEDGER = "ledger.jsonl"
CLOSED = "closed"


def write_whole(path: Path, text: str, *, lasting: bool = False) -> None:
    """Write a file so that it is there whole or not at all, whatever threads and processes write it at once.

    A lasting one is on the disk before it has its name: a power cut leaves it whole, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        if lasting:
            file.flush()
            os.fsync(file.fileno())
    aside.replace(path)


def keep_request(home: Home, request: PrepareRun) -> None:
    """Remember what the run was prepared for."""
    write_whole(home.run(request.run) / REQUEST, request.model_dump_json())


def kept_request(home: Home, run: str) -> PrepareRun:
    """What the run was prepared for."""
    return PrepareRun.model_validate_json((home.run(run) / REQUEST).read_text(encoding="utf-8"))


def kept_checkout(home: Home, run: str) -> Path | None:
    """The user's working tree; None for a URL, and on hosts where the run did not begin."""
    repo = kept_request(home, run).repo
    return None if is_url(repo) or not repo else Path(repo)


def kept_prepared(home: Home, run: str) -> RunPrepared | None:
    """What the host found when it prepared the run; None before."""
    path = home.run(run) / PREPARED
    return RunPrepared.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None


def kept_plan(home: Home, run: str) -> RoundPlan | None:
    """The frozen plan of a round that was prepared here; None before, and of a run that is no round."""
    path = home.run(run) / PLAN
    return RoundPlan.model_validate_json(path.read_bytes()) if path.exists() else None


def append_events(home: Home, run: str, events: Iterable[Event]) -> None:
    """Append the events that the run's ledger file does not have yet. Idempotent by their numbers."""
    path = home.run(run) / LEDGER
    have = read_events(path)
    fresh = [event for event in events if event.seq > len(have)]
    write_whole(path, "".join(f"{event.model_dump_json()}\n" for event in (*have, *fresh)))


def read_events(path: Path) -> tuple[Event, ...]:
    """Read a ledger file; a missing one has no events. Lines end at a newline alone: JSON may hold U+2028."""
    if not path.exists():
        return ()
    return tuple(EVENT.validate_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line)


def mark_closed(home: Home, run: str) -> None:
    """Note that nothing of the run is live any more."""
    home.run(run).mkdir(parents=True, exist_ok=True)
    (home.run(run) / CLOSED).touch()


def is_closed(home: Home, run: str) -> bool:
    """Whether the run let go of everything it held."""
    return (home.run(run) / CLOSED).exists()
