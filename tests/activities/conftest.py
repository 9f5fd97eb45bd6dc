"""A bench: a repository with its store, on which attempts are opened and recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.activities.repository import Repository, inspect
from orch.activities.snapshots import take_baseline, take_candidate
from orch.activities.store import Store
from orch.activities.workspaces.worktree import WorktreeProvider
from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import Baseline


@dataclass
class Bench:
    """One repository and what is done with it in a run.

    Attributes:
        home: the state directory.
        repo: the top of the user's working tree.
        run: the run's id.
    """

    home: Home
    repo: Path
    run: str = "run"
    provider: WorktreeProvider = field(default_factory=WorktreeProvider)

    @property
    def repository(self) -> Repository:
        return inspect(self.repo)

    @cached_property
    def store(self) -> Store:
        return Store.of(self.home, self.repository)

    def baseline(self) -> Baseline:
        return take_baseline(self.store, self.repository, self.run)

    def key(self, candidate: int = 1) -> AttemptKey:
        return AttemptKey(run=self.run, iteration=1, candidate=candidate, binding=candidate)

    def folder(self, candidate: int = 1) -> Path:
        return self.home.attempt(self.key(candidate))

    def open(self, candidate: int = 1, commit: str = "") -> Path:
        return self.provider.open(self.store, self.folder(candidate), commit or self.baseline().commit)

    def snapshot(self, candidate: int = 1, *, protected: Sequence[str] = (), carried: Sequence[str] = ()) -> Snapshot:
        return take_candidate(
            self.store,
            self.folder(candidate) / "tree",
            attempt=self.key(candidate),
            commit=self.baseline().commit,
            index=self.folder(candidate) / "index",
            contract=Contract(goal="g", rungs=(Rung(name="a", run="true"),), protected=tuple(protected)),
            carried=carried,
        )

    def close(self, candidate: int = 1) -> None:
        self.provider.close(self.store, self.folder(candidate))

    def files(self, commit: str) -> dict[str, bytes]:
        """The files of a commit, by path: contents, a link's target, a submodule's commit."""
        found = {}
        for record in self.store.git.lines("ls-tree", "-r", "-z", commit):
            facts, name = record.split(b"\t", 1)
            _, kind, oid = facts.decode().split()
            content = self.store.git.run("cat-file", "blob", oid) if kind == "blob" else oid.encode()
            found[os.fsdecode(name)] = content
        return found

    def sound(self) -> bool:
        """Whether nothing is missing in the store."""
        status, out, err = self.store.git.attempt("fsck", "--full", "--no-dangling", "--connectivity-only")
        return not status and b"missing" not in out and "missing" not in err


@pytest.fixture
def bench(home: Home) -> Callable[[Path], Bench]:
    """A bench for a repository."""
    return lambda repo: Bench(home, repo)


@pytest.fixture
def untouched(repo: Path, fingerprint: Callable[[Path], dict[str, str]]) -> Iterator[Callable[[], None]]:
    """Call it when the repository is as the test wants it; it is compared at the end."""
    taken: list[dict[str, str]] = []
    yield lambda: taken.append(fingerprint(repo))
    for before in taken:
        assert fingerprint(repo) == before
