"""What is known before anything is collected: which runs are dead, which stores a live run may be using."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...workflows.model.goal import RunPrepared
from .. import artifacts
from ..artifacts import PREPARED
from ..home import Home
from ..store import Store
from ..workspaces.removal import TRASH
from .found import KeptError

GRACE_S = 600.0
"""What is younger than this may belong to somebody who has not said so yet."""

PARTS = ("", "/measure", "/gate", "/review", "/A", "/B")
"""Where workspaces lie, below an attempt's folder."""


@dataclass(frozen=True)
class Scene:
    """One look at the state directory.

    Attributes:
        home: the state directory.
        dead: runs that hold something here and that the engine does not run.
        now: Unix time of the look.
    """

    home: Home
    dead: frozenset[str]
    now: float = field(default_factory=time.time)

    def runs(self) -> list[Path]:
        """The folders of all runs; a link in the place of one is no run."""
        return [path for path in _folders(self.home.root / "runs") if not path.name.startswith(TRASH)]

    def open_runs(self) -> list[Path]:
        """The folders of the runs that may be live, asked anew: none may have begun since."""
        return [
            path for path in self.runs() if not artifacts.is_closed(self.home, path.name) and path.name not in self.dead
        ]

    def has_begun(self, run: Path) -> bool:
        """Whether the engine must know the run by now: its folder is made a moment before it is started."""
        return (run / artifacts.REQUEST).exists() or self.now - run.stat().st_mtime > GRACE_S

    def stores(self) -> list[Store]:
        """All stores."""
        paths = _folders(self.home.root / "stores")
        return [Store(self.home, path.name) for path in paths if not path.name.startswith(TRASH)]

    def busy(self, key: str) -> bool:
        """Whether a run that may be live uses a store; one that is just beginning may use any."""
        return any(store_of(run) in {None, key} for run in self.open_runs())

    @contextmanager
    def alone(self, store: Store) -> Iterator[None]:
        """Hold a store's lock while no live run uses it; KeptError when that is not to be had at once."""
        try:
            with store.lock(wait=False):
                if self.busy(store.key):
                    raise KeptError("a run began that uses it")
                yield
        except BlockingIOError:
            raise KeptError("somebody else holds the store's lock") from None

    @cached_property
    def standing(self) -> dict[str, int]:
        """The working directories of this user's processes, with one process each."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cwd"):
            try:
                found[str(path.readlink())] = int(path.parent.name)
            except OSError:
                continue
        return found

    def require_free(self, path: Path) -> None:
        """KeptError when a process stands in a folder, or when it is reached through somebody's link."""
        top = self.home.root / path.relative_to(self.home.root).parts[0]
        if path.parent.resolve() != top.resolve() / path.parent.relative_to(top):
            raise KeptError("it is reached through a link")
        real = path.parent.resolve() / path.name
        for place, pid in self.standing.items():
            if Path(place).is_relative_to(real):
                who = "this process" if pid == os.getpid() else f"process {pid}"
                raise KeptError(f"{who} stands in it")


def store_of(run: Path) -> str | None:
    """The key of a run's store, empty for a run that was refused one; None while that is not decided."""
    prepared = run / PREPARED
    try:
        return RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8")).store
    except (OSError, ValueError):
        return None


def workspaces_of(run: Path) -> Iterator[Path]:
    """The folders of a run in which workspaces were, or are: attempts, their measurements, shells."""
    for part in PARTS:
        yield from sorted(path for path in run.glob(f"attempts/i*{part}") if path.is_dir())
    yield from sorted(path for path in run.glob("shell-*") if path.is_dir())


def _folders(top: Path) -> list[Path]:
    return sorted(path for path in top.iterdir() if path.is_dir() and not path.is_symlink()) if top.is_dir() else []
