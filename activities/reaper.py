"""Finding what dead runs hold: jobs, workspaces, slots, reservations, old results. Used at worker start and by `orch gc`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from . import artifacts, slots
from .home import Home
from .runs import PREPARED, close_run_folder
from .store import Store
from ..workflows.model.goal import CloseRun, PrepareRun, RunPrepared


@dataclass(frozen=True)
class Collected:
    """One thing that no live run needs.

    Attributes:
        kind: `run` (what a dead run still held), `result` (an old closed run's candidates and logs) or `slot`.
        path: where it lies.
        bytes: how much room it takes.
    """

    kind: str
    path: Path
    bytes: int


def unclosed(home: Home) -> tuple[str, ...]:
    """Runs whose folder says that they still hold something; the engine knows which of them are live."""
    folders = sorted((home.root / "runs").glob("*")) if (home.root / "runs").exists() else []
    return tuple(folder.name for folder in folders if not artifacts.is_closed(home, folder.name))


def collect(home: Home, live: Set[str], *, keep_s: float | None = None, dry_run: bool = False) -> list[Collected]:
    """Let go of what runs hold that are not live; results of closed runs go once they are older than `keep_s`.

    Args:
        home: the state directory.
        live: ids of the runs that the engine says are open.
        keep_s: seconds after which a closed run's folder and refs are removed; None keeps them all.
        dry_run: only say what would be collected.
    """
    found = [*_held(home, live, dry_run=dry_run), *_stale_slots(home, live, dry_run=dry_run)]
    return found if keep_s is None else [*found, *_old(home, live, keep_s, dry_run=dry_run)]


def _held(home: Home, live: Set[str], *, dry_run: bool) -> Iterator[Collected]:
    for run in unclosed(home):
        if run in live:
            continue
        folder = home.run(run)
        before = _size(folder)
        if not dry_run:
            _close(home, run)
        yield Collected("run", folder, before if dry_run else before - _size(folder))


def _close(home: Home, run: str) -> None:
    request, prepared = home.run(run) / artifacts.REQUEST, home.run(run) / PREPARED
    if request.exists():
        repo = PrepareRun.model_validate_json(request.read_text(encoding="utf-8")).repo
        store = RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8")).store if prepared.exists() else ""
        close_run_folder(home, CloseRun(run=run, repo=repo, store=store))
    else:
        artifacts.mark_closed(home, run)


def _stale_slots(home: Home, live: Set[str], *, dry_run: bool) -> Iterator[Collected]:
    for folder in (home.slots, home.ports):
        for index, holder in slots.held(folder).items():
            if holder.split("/")[0] not in live:
                if not dry_run:
                    slots.release(folder, holder)
                yield Collected("slot", folder / str(index), 0)


def _old(home: Home, live: Set[str], keep_s: float, *, dry_run: bool) -> Iterator[Collected]:
    for closed in sorted((home.root / "runs").glob(f"*/{artifacts.CLOSED}")):
        folder = closed.parent
        if folder.name in live or time.time() - closed.stat().st_mtime < keep_s:
            continue
        size = _size(folder)
        if not dry_run:
            _forget(home, folder)
        yield Collected("result", folder, size)


def _forget(home: Home, folder: Path) -> None:
    prepared = folder / PREPARED
    if prepared.exists():
        key = RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8")).store
        if key and home.store(key).exists():
            Store(home, key).drop_run(folder.name)
    shutil.rmtree(folder)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
