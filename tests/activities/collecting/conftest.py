"""A state directory with runs that are live, closed or forgotten, made without an engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orch.activities import artifacts
from orch.activities.artifacts import PREPARED
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline
from orch.activities.store import Store
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, RunPrepared, SandboxMode
from orch.workflows.model.promotion import PromoteTarget

CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))
DAY = 86_400.0


@dataclass(frozen=True)
class State:
    """A state directory and the repository its runs work on."""

    home: Home
    repo: Path
    store: Store

    def begin(self, run: str) -> Path:
        """A run that is prepared: its folder, its baseline in the store."""
        request = PrepareRun(
            run=run,
            repo=str(self.repo),
            contract=CONTRACT,
            agents=("cmd:true",),
            sandbox=SandboxMode.OFF,
            promote=PromoteTarget.parse("none"),
        )
        artifacts.keep_request(self.home, request)
        baseline = take_baseline(self.store, inspect(self.repo), run)
        prepared = RunPrepared(store=self.store.key, baseline=baseline, contract=CONTRACT)
        artifacts.write_whole(self.home.run(run) / PREPARED, prepared.model_dump_json())
        return self.home.run(run)

    def attempt(self, run: str) -> Path:
        """The folder of a run's attempt, made."""
        folder = self.home.attempt(AttemptKey(run=run, iteration=1, candidate=1, binding=1))
        folder.mkdir(parents=True)
        return folder

    def pin(self, run: str, content: str) -> str:
        """A candidate's commit with a file of its own, pinned for a run; its objects are loose."""
        blob = self.store.git.text("hash-object", "-w", "--stdin", stdin=content.encode())
        tree = self.store.git.text("mktree", stdin=f"100644 blob {blob}\tfile\n".encode())
        commit = self.store.git.text("commit-tree", tree, stdin=b"candidate\n")
        self.store.pin(f"refs/orch/{run}/i1-c1-b1", commit)
        return commit

    def close(self, run: str, *, days: float = 0) -> None:
        """Close a run so many days ago."""
        artifacts.mark_closed(self.home, run)
        age(self.home.run(run) / artifacts.CLOSED, days)


def age(path: Path, days: float = 1) -> None:
    """Make a file, or all in a folder, so much older."""
    when = time.time() - days * DAY
    for one in [path, *path.rglob("*")] if path.is_dir() else [path]:
        os.utime(one, (when, when), follow_symlinks=False)


@pytest.fixture
def make_state(home: Home) -> Callable[[Path], State]:
    """A state directory with the store of a repository."""
    return lambda repo: State(home, repo, Store.of(home, inspect(repo)))


@pytest.fixture
def state(make_state: Callable[[Path], State], make_repo: Callable[..., Path], tmp_path: Path) -> State:
    """A state directory with the store of a small repository."""
    return make_state(make_repo(tmp_path / "project", {"a.txt": "one\n"}))


@pytest.fixture(name="age")
def age_fixture() -> Callable[..., None]:
    """Make a file, or all in a folder, older by some days."""
    return age
