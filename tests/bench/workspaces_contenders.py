"""Who makes the workspaces: each of `orch`'s providers, and a user with `git worktree add`, one after another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

from orch.activities.snapshots import take_candidate
from orch.activities.store import Store
from orch.activities.workspaces import INDEX, TREE, Provider
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung

from .workspaces_repo import git

CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))

EDIT = "import pathlib, sys\nfor name in sys.argv[2:]: pathlib.Path(name).write_text(sys.argv[1] + name)\n"
"""Overwrites files with a content that nobody had before."""


class Contender(Protocol):
    """Makes workspaces by number, works in them, and removes them."""

    @property
    def name(self) -> str:
        """Who it is."""
        ...

    def open(self, number: int) -> None:
        """Make one."""

    def inside(self, number: int, *argv: str) -> bytes:
        """Run a command in one, as an agent would; return what it printed."""
        ...

    def snapshot(self, number: int) -> str:
        """Record it; return the tree."""
        ...

    def close(self, numbers: Iterable[int]) -> None:
        """Remove some."""

    def folder(self, number: int) -> Path:
        """All of one that takes room."""
        ...


@dataclass
class ByProvider:
    """A provider of `orch`, called as its activities call it."""

    provider: Provider
    store: Store
    commit: str
    _turns: count[int] = field(default_factory=count)

    @property
    def name(self) -> str:
        """The provider's."""
        return self.provider.name

    def folder(self, number: int) -> Path:
        """An attempt's folder."""
        return self.store.home.run(f"run-{self.name}") / "attempts" / str(number)

    def open(self, number: int) -> None:
        """What the activity does but for slots and set-up."""
        self.provider.open(self.store, self.folder(number), self.commit)

    def inside(self, number: int, *argv: str) -> bytes:
        """By the provider's launcher, if it has one."""
        folder = self.folder(number)
        return _output(self.provider.entering(folder, argv), folder / TREE)

    def snapshot(self, number: int) -> str:
        """The whole step: objects, commit and pin."""
        folder, turn = self.folder(number), next(self._turns)
        key = AttemptKey(run=f"run-{self.name}", iteration=1, candidate=turn, binding=turn)
        return take_candidate(
            self.store,
            folder / TREE,
            attempt=key,
            commit=self.commit,
            index=folder / INDEX,
            contract=CONTRACT,
            carried=(),
        ).tree

    def close(self, numbers: Iterable[int]) -> None:
        """One by one."""
        for number in numbers:
            self.provider.close(self.store, self.folder(number))


@dataclass
class ByHand:
    """`git worktree add`, and for a snapshot `git add -A && git write-tree` with a copy of a settled index."""

    repo: Path
    place: Path
    name: str = "git worktree add"

    def folder(self, number: int) -> Path:
        """The worktree."""
        return self.place / str(number)

    def open(self, number: int) -> None:
        """One command."""
        git(self.repo, "worktree", "add", "-q", "--detach", str(self.folder(number)), "HEAD")

    def inside(self, number: int, *argv: str) -> bytes:
        """As it is."""
        return _output(argv, self.folder(number))

    def settle(self, number: int) -> None:
        """Refresh its index and keep a copy, once a second has passed: git shall not read untouched files again."""
        git(self.folder(number), "update-index", "-q", "--refresh")
        shutil.copy2(self._admin(number) / "index", self.place / f"{number}.index")

    def snapshot(self, number: int) -> str:
        """Three commands: cp, git add, git write-tree."""
        index = shutil.copy2(self.place / f"{number}.index", self.place / f"{number}.copy")
        env = {"GIT_INDEX_FILE": str(index)}
        git(self.folder(number), "add", "-A", **env)
        return git(self.folder(number), "write-tree", **env)

    def close(self, numbers: Iterable[int]) -> None:
        """One command each."""
        for number in numbers:
            git(self.repo, "worktree", "remove", "--force", str(self.folder(number)))

    def _admin(self, number: int) -> Path:
        return self.repo / ".git" / "worktrees" / str(number)


def edit(contender: Contender, number: int, mark: str, names: list[str]) -> None:
    """Overwrite files in a workspace, from inside."""
    if names:
        contender.inside(number, sys.executable, "-I", "-S", "-c", EDIT, mark, *names)


def _output(argv: tuple[str, ...], cwd: Path) -> bytes:
    return subprocess.run(argv, cwd=cwd, check=True, capture_output=True).stdout
