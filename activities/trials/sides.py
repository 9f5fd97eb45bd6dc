"""The two sides of a trial: a place for the base and one for the candidate, below the measurement's folder."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from ...workflows.model.base import Sha
from ...workflows.model.round.lane import TrialStep
from ...workflows.model.round.plan import RoundPlan
from ...workflows.model.verdict import Excerpt
from ..effect import in_thread, kill_requested
from ..excerpts import excerpt
from ..home import Home
from ..jobs import StepResult, end_job
from ..places import Place
from ..store import Store
from ..workspaces.registry import close_workspace
from ..workspaces.removal import discard, sweep
from .processors import TRIAL

BUILD = "build"
"""The folder of the job that builds both sides."""

CHECK = "check-"
"""Begins the names of the folders of jobs that validate outputs."""

RUNS = "runs"
"""The folder with what each benchmark run may write."""


ALONE_S = 0.05
"""Seconds between two looks at whether another worker has let go of a trial."""


class Side(StrEnum):
    """Which of the two."""

    BASE = "base"
    CANDIDATE = "candidate"


FOLDERS = {Side.BASE: "A", Side.CANDIDATE: "B"}
"""Of the two places. Their names are as long: the length of paths alone can make a program faster or slower (Mytkowicz
et al., Producing wrong data without doing anything obviously wrong, 2009)."""


@dataclass(frozen=True)
class Trial:
    """Two commits measured against one another.

    Attributes:
        home: the state directory.
        request: names the measurement's folder, the plan and both commits.
    """

    home: Home
    request: TrialStep

    @property
    def plan(self) -> RoundPlan:
        """The frozen plan."""
        return self.request.plan

    @cached_property
    def store(self) -> Store:
        """Where the commits lie."""
        return Store(self.home, self.request.store)

    @property
    def folder(self) -> Path:
        """The measurement's folder."""
        return self.home.attempt(self.request.attempt)

    @property
    def run_folder(self) -> Path:
        """The folder of the run."""
        return self.home.run(self.request.attempt.run)

    def place(self, side: Side) -> Place:
        """Where a side's commands run."""
        return Place(self.home, self.request.attempt, self.folder / FOLDERS[side])

    def commit(self, side: Side) -> Sha:
        """What is checked out there."""
        return self.request.base if side is Side.BASE else self.request.candidate

    def said(self, step: StepResult) -> Excerpt:
        """What a step printed: its errors, or else all the rest."""
        has_errors = step.stderr.exists() and step.stderr.stat().st_size
        return excerpt(step.stderr if has_errors else step.stdout, run_folder=self.run_folder)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let one worker at a time be at this trial: one that the engine took for dead may still be at it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "alone").open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(ALONE_S)
                else:
                    break
            yield

    @asynccontextmanager
    async def measured_alone(self) -> AsyncIterator[None]:
        """The same; when the work inside is cancelled for good it is dropped, else it goes on and is found again."""
        try:
            async with self.alone():
                yield
        except asyncio.CancelledError:
            if kill_requested():
                await in_thread(self.drop)
            raise

    def drop(self) -> None:
        """Let go of the copies and of what the runs wrote; facts and logs stay. Idempotent."""
        drop_trial(self.store, self.folder)
        self.place(Side.BASE).release_ports()


def drop_trial(store: Store, folder: Path) -> None:
    """End what still runs of a measurement and remove its copies. Idempotent, whatever is left of it."""
    for job in (folder / BUILD, *folder.glob(f"{TRIAL}*"), *folder.glob(f"{CHECK}*")):
        end_job(job)
    for name in FOLDERS.values():
        if (folder / name).is_dir():
            close_workspace(store, folder / name)
            discard(folder / name, folder)
    if folder.exists():
        discard(folder / RUNS, folder)
        sweep(folder)
