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
from orch.activities.workspaces import INDEX, TREE, Provider, enter
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung

from . import editor
from .editor import Script
from .scripts import ATTRIBUTES, EXECUTABLE, FILES, FILTER, LINKS, MACRO, smaller

EDITOR = (sys.executable, "-I", "-S", str(Path(editor.__file__)))
CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))
SETTLED_S = 1.1
"""Git compares whole seconds: a change is sure to be seen a second after the checkout."""


Bundle = Sequence[Script]
"""Scripts that are applied in one workspace, each to a part of its own: git's processes are what the time goes to."""


@dataclass
class Rig:
    """A repository of equal parts, its store, and the workspaces made of it.

    Attributes:
        folder: where all of it lies.
        parts: the folders of the parts, relative to the top of the tree.
        store: the store.
        commit: what every workspace is checked out from.
    """

    folder: Path
    parts: Sequence[str]
    store: Store
    commit: str
    _numbers: count[int] = field(default_factory=count)

    @classmethod
    def make(cls, folder: Path, parts: Sequence[str], *, normalized: bool = False) -> Rig:
        """Commit the files, then their attributes: unless `normalized`, some files are not as these say."""
        repo = folder / "repo"
        repo.mkdir()
        _git(repo, "init", "-q", "-b", "main", "--template=")
        _git(repo, "config", *FILTER)
        for part in parts:
            _fill(repo / part)
        _git(repo, "add", "-A", "-f")
        (repo / ".gitattributes").write_bytes(MACRO)
        for part in parts:
            with (repo / part / ".gitattributes").open("ab") as file:
                file.write(ATTRIBUTES)
        _git(repo, "add", *(["--renormalize"] if normalized else []), "." if normalized else "*.gitattributes")
        _git(repo, "add", "*.gitattributes")
        _git(repo, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first")
        repository = inspect(repo)
        store = Store.of(Home(folder / "state"), repository)
        assert repository.head
        import_commit(store.git, repository, repository.head)
        return cls(folder, parts, store, repository.head)

    def differing(self, provider: Provider, bundles: Sequence[Bundle], wanted: Sequence[str]) -> list[Bundle]:
        """The bundles that leave another tree in a workspace of the provider than the wanted one."""
        found = self.by_provider(provider, bundles)
        return [bundle for bundle, one, other in zip(bundles, found, wanted, strict=True) if one != other]

    def least(self, provider: Provider, bundle: Bundle) -> str:
        """The smallest of a bundle's scripts that makes the difference alone, and the difference."""
        suspects: list[Script] = list(bundle)
        shown = f"only together: {bundle}"
        while suspects:
            bundles = [[script] for script in suspects]
            trees = zip(suspects, self.by_provider(provider, bundles), self.by_git(bundles), strict=True)
            bad = next(((script, one, other) for script, one, other in trees if one != other), None)
            if bad:
                shown = f"{provider.name}: {bad[0]}\n{self._difference(bad[2], bad[1])}"
            suspects = smaller(bad[0]) if bad else []
        return shown

    def by_provider(self, provider: Provider, bundles: Sequence[Bundle]) -> list[str]:
        """The tree that each bundle leaves in a workspace of its own; edits follow right upon the checkout."""
        keys = [AttemptKey(run="run", iteration=1, candidate=n, binding=n) for n in self._take(bundles)]
        folders = [self.store.home.attempt(key) for key in keys]
        trees = [provider.open(self.store, folder, self.commit) for folder in folders]
        self._edit(trees, bundles, *([enter.__file__] if provider.name == "overlay" else []))
        return [self._recorded(provider, key) for key in keys]

    def by_git(self, bundles: Sequence[Bundle]) -> list[str]:
        """The tree that `git add -A` and `git write-tree` make of each: no code of `orch` has a part in it.

        As documented, the files of repositories inside are recorded, and what is no file is none.
        """
        places = [self.folder / "plain" / str(n) for n in self._take(bundles)]
        indexes = [self._check_out(place, bundle) for place, bundle in zip(places, bundles, strict=True)]
        time.sleep(SETTLED_S)
        for index in indexes:  # as if a refresh had written it now: git reads again what is as young as its index
            os.utime(index)
        self._edit(places, bundles)
        return [self._add_all(place, index) for place, index in zip(places, indexes, strict=True)]

    def _take(self, bundles: Sequence[Bundle]) -> list[int]:
        return [next(self._numbers) for _ in bundles]

    def _edit(self, trees: Sequence[Path], bundles: Sequence[Bundle], *more: str) -> None:
        """Apply each bundle in its tree; `more` names the program that enters it first."""
        work = [
            (str(tree), [(part, script) for part, script in zip(self.parts, bundle, strict=False)])
            for tree, bundle in zip(trees, bundles, strict=True)
        ]
        file = self.folder / "work"
        file.write_bytes(marshal.dumps(work))
        subprocess.run([*EDITOR, str(file), *more], check=True)

    def _recorded(self, provider: Provider, key: AttemptKey) -> str:
        folder = self.store.home.attempt(key)
        try:
            return take_candidate(
                self.store,
                folder / TREE,
                attempt=key,
                commit=self.commit,
                index=folder / INDEX,
                contract=CONTRACT,
                carried=(),
            ).tree
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its script
            return f"{type(error).__name__}: {error}"
        finally:
            provider.close(self.store, folder)

    def _check_out(self, place: Path, bundle: Bundle) -> Path:
        """Plain git's working tree, with a repository of its own where the script uses git; and a copy of its index."""
        index = place.with_suffix(".index")
        place.mkdir(parents=True)
        if any(edit[0] == "git" for script in bundle for edit in script):
            _git(self.folder, "clone", "-q", "-s", str(self._repo), str(place))
            _git(place, "config", *FILTER)
            _git(place, "reset", "-q", "--hard", self.commit)
            shutil.copy2(place / ".git" / "index", index)
        else:
            _git(place, "read-tree", "--reset", "-u", self.commit, **self._env(place, index))
        return index

    def _add_all(self, place: Path, index: Path) -> str:
        for folder, folders, names in os.walk(place):
            for path in (Path(folder, name) for name in [*folders, *names]):
                if path.name == ".git" or not (path.is_symlink() or path.is_file() or path.is_dir()):
                    _remove(path)
        try:
            _git(place, "add", "-A", **self._env(place, index))
            return _git(place, "write-tree", **self._env(place, index))
        except subprocess.CalledProcessError as error:
            return f"git: {error.stderr.decode(errors='replace')}"
        finally:
            shutil.rmtree(place)

    def _difference(self, wanted: str, found: str) -> str:
        if ":" in wanted + found:
            return f"wanted {wanted}\nfound {found}"
        both = {
            "GIT_DIR": str(self.store.git_dir),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._repo / ".git/objects"),
        }
        return _git(self.folder, "diff-tree", "-r", wanted, found, **both)

    @property
    def _repo(self) -> Path:
        return self.folder / "repo"

    def _env(self, place: Path, index: Path) -> dict[str, str]:
        return {"GIT_DIR": str(self._repo / ".git"), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}


def _fill(top: Path) -> None:
    for name, content in FILES.items():
        path = top / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name, target in LINKS.items():
        (top / os.fsdecode(name)).symlink_to(os.fsdecode(target))
    (top / os.fsdecode(EXECUTABLE)).chmod(0o755)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _git(folder: Path, *args: str, **env: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, env={**os.environ, **env}, capture_output=True, check=True)
    return done.stdout.decode().strip()
