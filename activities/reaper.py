"""What dead runs hold: jobs, workspaces, slots, reservations, old results. Used at worker start and by `orch gc`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..workflows.model.goal import CloseRun, PrepareRun, RunPrepared
from . import artifacts, slots
from .home import Home
from .runs import close_run_folder
from .store import Store


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


def suspects(home: Home) -> frozenset[str]:
    """Runs that hold something here; whether they are dead is for the engine to say, one by one."""
    folders = (home.root / "runs").glob("*") if (home.root / "runs").exists() else ()
    unclosed = {folder.name for folder in folders if not artifacts.is_closed(home, folder.name)}
    return frozenset(unclosed | {_run_of(holder) for _, holder in _holders(home)})


def collect(home: Home, dead: frozenset[str], *, keep_s: float | None = None, dry_run: bool = False) -> list[Collected]:
    """Let go of what dead runs hold; results of closed runs go once they are older than `keep_s`.

    Args:
        home: the state directory.
        dead: ids of suspects that the engine does not run; what nobody asked the engine about is left alone.
        keep_s: seconds after which a closed run's folder and refs are removed; None keeps them all.
        dry_run: only say what would be collected.
    """
    found = [*_held(home, dead, dry_run=dry_run), *_stale_slots(home, dead, dry_run=dry_run)]
    return found if keep_s is None else [*found, *_old(home, keep_s, dry_run=dry_run)]


def _held(home: Home, dead: frozenset[str], *, dry_run: bool) -> Iterator[Collected]:
    for run in sorted(dead):
        folder = home.run(run)
        if not folder.exists() or artifacts.is_closed(home, run):
            continue
        before = _size(folder)
        if not dry_run:
            _close(home, run)
        yield Collected("run", folder, before if dry_run else before - _size(folder))


def _close(home: Home, run: str) -> None:
    request, prepared = home.run(run) / artifacts.REQUEST, home.run(run) / artifacts.PREPARED
    if request.exists():
        repo = PrepareRun.model_validate_json(request.read_text(encoding="utf-8")).repo
        store = RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8")).store if prepared.exists() else ""
        close_run_folder(home, CloseRun(run=run, repo=repo, store=store))
    else:
        artifacts.mark_closed(home, run)


def _stale_slots(home: Home, dead: frozenset[str], *, dry_run: bool) -> Iterator[Collected]:
    for path, holder in _holders(home):
        if _run_of(holder) in dead:
            if not dry_run:
                slots.release(path.parent, holder)
            yield Collected("slot", path, 0)


def _holders(home: Home) -> list[tuple[Path, str]]:
    folders = (home.slots, home.ports)
    return [(folder / str(index), holder) for folder in folders for index, holder in slots.held(folder).items()]


def _run_of(holder: str) -> str:
    return holder.split("/", maxsplit=1)[0]


def _old(home: Home, keep_s: float, *, dry_run: bool) -> Iterator[Collected]:
    for closed in sorted((home.root / "runs").glob(f"*/{artifacts.CLOSED}")):
        folder = closed.parent
        if time.time() - closed.stat().st_mtime < keep_s:
            continue
        size = _size(folder)
        if not dry_run:
            _forget(home, folder)
        yield Collected("result", folder, size)


def _forget(home: Home, folder: Path) -> None:
    prepared = folder / artifacts.PREPARED
    if prepared.exists():
        key = RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8")).store
        if key and home.store(key).exists():
            Store(home, key).drop_run(folder.name)
    shutil.rmtree(folder)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
