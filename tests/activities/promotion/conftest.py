"""A user's repository, its store, and trees made from it by real git."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from orch.activities.git import Git
from orch.activities.home import Home
from orch.activities.promotion import promote, restore
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.workflows.model.promotion import Promote, PromoteTarget, Promotion

DATE = "1700000000 +0000"
DATED = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
State = dict[str, tuple[str, bytes]]


@dataclass(frozen=True)
class Scene:
    """One repository and its store; `old` and `new` are commits in the store."""

    home: Home
    top: Path
    store: Store
    work: Path

    @property
    def git(self) -> Git:
        return Git(self.top, DATED)

    def snapshot(self, tree: Path | None = None, parent: str | None = None, *, name: str = "start") -> str:
        """The user's tree (or another folder), dirty and untracked files included, as a commit of the store."""
        index = self.work / f"{name}.index"
        index.unlink(missing_ok=True)
        place = Git(tree or self.top, DATED).with_env(
            GIT_DIR=self.store.git_dir, GIT_WORK_TREE=tree or self.top, GIT_INDEX_FILE=index
        )
        if parent:
            place.run("read-tree", parent)
        place.run("add", "-A")
        parents = ("-p", parent) if parent else ()
        commit = place.text("commit-tree", place.text("write-tree"), *parents, "-m", name)
        self.store.pin(f"refs/orch/test/{name}", commit)
        return commit

    def edited(self, old: str, edit: Callable[[Path], object], *, name: str = "result") -> str:
        """What an agent leaves that starts at `old` and makes `edit` in a workspace."""
        workspace = self.work / name
        workspace.mkdir()
        git = Git(workspace, DATED).with_env(
            GIT_DIR=self.store.git_dir, GIT_WORK_TREE=workspace, GIT_INDEX_FILE=self.work / f"{name}.index"
        )
        git.run("read-tree", old)
        git.run("checkout-index", "-a", "-f")
        edit(workspace)
        return self.snapshot(workspace, old, name=name)

    def request(self, old: str, new: str, target: str = "worktree") -> Promote:
        return Promote(
            run="run-1", repo=str(self.top), store=self.store.key, old=old, new=new, target=PromoteTarget.parse(target)
        )

    def promote(self, old: str, new: str, target: str = "worktree") -> Promotion:
        return promote(self.home, self.request(old, new, target))

    def restore(self, old: str, new: str) -> Promotion:
        return restore(self.home, run="run-1", repo=str(self.top), store=self.store.key, old=old, new=new)

    def tree(self, commit: str) -> str:
        return self.store.tree_of(commit)

    def files(self) -> State:
        """Every file and link of the working tree: kind and permissions, and bytes."""
        return state(self.top, skip=".git")

    def private(self) -> State:
        """Every file of the git directory but objects."""
        return {path: seen for path, seen in state(self.top / ".git").items() if not path.startswith("objects/")}

    def journals(self) -> list[Path]:
        return [*(self.store.path / "journal").glob("*"), *(self.top / ".git").glob("orch-journal*")]


def state(folder: Path, skip: str = "") -> State:
    found: State = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != skip]
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(root) / name
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = (oct(path.lstat().st_mode), content)
    return found


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def make_scene(root: Path) -> Scene:
    """A repository with a few committed files, on branch main."""
    top, work = root / "repo", root / "work"
    top.mkdir(parents=True)
    work.mkdir()
    git = Git(top, DATED)
    git.run("init", "-q", "-b", "main")
    write(top, {"a.txt": "a\n", "b.txt": "b\n", "dir/c.txt": "c\n", "dir/deep/d.txt": "d\n", "run.sh": "#!/bin/sh\n"})
    write(top, {".gitignore": "*.log\nbuild/\n"})
    git.run("add", "-A")
    git.run("commit", "-q", "-m", "first")
    home = Home(root / "state")
    return Scene(home, top, Store.of(home, inspect(top)), work)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)
