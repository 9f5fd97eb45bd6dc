"""Runs edit scripts in the workspaces of a provider, and in plain working trees of git: which trees come out."""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from orch.activities.home import Home
from orch.activities.objects import import_commit
from orch.activities.repository import inspect
from orch.activities.snapshots import take_candidate
from orch.activities.store import Store
from orch.activities.workspaces import INDEX, TREE, Provider
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung

from . import editor
from .editor import Script
from .scripts import ATTRIBUTES, EXECUTABLE, FILES, FILTER, LINKS

EDITOR = (sys.executable, "-I", "-S", str(Path(editor.__file__)))
CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))
SETTLED_S = 1.1
"""Git compares whole seconds: a change is sure to be seen a second after the checkout."""


@dataclass
class Rig:
    """A repository, its store, and the workspaces made of it.

    Attributes:
        folder: where all of it lies.
        store: the store.
        commit: what every workspace is checked out from.
    """

    folder: Path
    store: Store
    commit: str
    _numbers: count[int] = field(default_factory=count)

    @classmethod
    def make(cls, folder: Path, *, normalized: bool = False) -> Rig:
        """Commit the files, then their attributes: unless `normalized`, the repository has files that are not as these say."""
        repo = folder / "repo"
        for name, content in FILES.items():
            path = repo / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name, target in LINKS.items():
            (repo / os.fsdecode(name)).symlink_to(os.fsdecode(target))
        (repo / os.fsdecode(EXECUTABLE)).chmod(0o755)
        _git(repo, "init", "-q", "-b", "main", "--template=")
        _git(repo, "add", "-A", "-f")
        (repo / ".gitattributes").write_bytes(ATTRIBUTES)
        for key, value in FILTER:
            _git(repo, "config", key, value)
        _git(repo, "add", *(["--renormalize", "."] if normalized else []), ".gitattributes")
        _git(repo, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first")
        repository = inspect(repo)
        store = Store.of(Home(folder / "state"), repository)
        assert repository.head
        import_commit(store.git, repository, repository.head)
        return cls(folder, store, repository.head)

    def by_provider(self, provider: Provider, scripts: Sequence[Script]) -> list[str]:
        """The tree that each script leaves in a workspace of its own; edits follow right upon the checkout."""
        keys = [AttemptKey(run="run", iteration=1, candidate=n, binding=n) for n in self._take(scripts)]
        folders = [self.store.home.attempt(key) for key in keys]
        for folder in folders:
            folder.mkdir(parents=True)
            provider.open(self.store, folder, self.commit)
        self._edit([folder / TREE for folder in folders], scripts)
        return [self._recorded(provider, key) for key in keys]

    def by_git(self, scripts: Sequence[Script]) -> list[str]:
        """The tree that `git add -A` and `git write-tree` make of each: no code of `orch` has a part in it.

        As documented, the files of repositories inside are recorded, and what is no file is none.
        """
        places = [self.folder / "plain" / str(n) for n in self._take(scripts)]
        indexes = [_check_out(self.folder / "repo", place, self.commit) for place in places]
        time.sleep(SETTLED_S)
        for index in indexes:  # as if a refresh had written it now: git reads again what is as young as its index
            os.utime(index)
        self._edit(places, scripts)
        return [_add_all(self.folder / "repo", place, index) for place, index in zip(places, indexes, strict=True)]

    def _take(self, scripts: Sequence[Script]) -> list[int]:
        return [next(self._numbers) for _ in scripts]

    def _edit(self, places: Sequence[Path], scripts: Sequence[Script]) -> None:
        work = self.folder / "work"
        work.write_bytes(marshal.dumps([(str(place), script) for place, script in zip(places, scripts, strict=True)]))
        subprocess.run([*EDITOR, str(work)], check=True)

    def _recorded(self, provider: Provider, key: AttemptKey) -> str:
        folder = self.store.home.attempt(key)
        try:
            found = take_candidate(
                self.store,
                folder / TREE,
                attempt=key,
                commit=self.commit,
                index=folder / INDEX,
                contract=CONTRACT,
                carried=(),
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its script
            return f"{type(error).__name__}: {error}"
        finally:
            provider.close(self.store, folder)
        return found.tree


def _check_out(repo: Path, place: Path, commit: str) -> Path:
    """A linked worktree, and a copy of its pristine index."""
    _git(repo, "worktree", "add", "-q", "--detach", str(place), commit)
    pristine = place.with_suffix(".index")
    shutil.copy2(repo / ".git" / "worktrees" / place.name / "index", pristine)
    return pristine


def _add_all(repo: Path, place: Path, index: Path) -> str:
    for folder, folders, names in os.walk(os.fsencode(place)):
        for name in [*folders, *names]:
            path = Path(os.fsdecode(os.path.join(folder, name)))
            if name == b".git" or not (path.is_symlink() or path.is_file() or path.is_dir()):
                _remove(path)
    env = {"GIT_DIR": str(repo / ".git"), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}
    try:
        _git(place, "add", "-A", **env)
        return _git(place, "write-tree", **env)
    except subprocess.CalledProcessError as error:
        return f"git: {error.stderr.decode(errors='replace')}"
    finally:
        shutil.rmtree(place)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _git(folder: Path, *args: str, **env: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, env={**os.environ, **env}, capture_output=True, check=True)
    return done.stdout.decode().strip()
