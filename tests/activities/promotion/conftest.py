"""A user's repository, its store, and trees made from it by real git."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orch.activities import renames
from orch.activities.git import Git
from orch.activities.home import Home
from orch.activities.promotion import promote, restore
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline
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

    def snapshot(self, name: str = "start") -> str:
        """The user's tree, dirty and untracked files included, as runs take it."""
        return take_baseline(self.store, inspect(self.top), name).commit

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
        git.run("add", "-A")
        commit = git.text("commit-tree", git.text("write-tree"), "-p", old, "-m", name)
        self.store.pin(f"refs/orch/test/{name}", commit)
        return commit

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


@pytest.fixture
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that knows no rename flags."""
    monkeypatch.setattr(renames, "_symbol", lambda _: None)


def small_edit(folder: Path) -> None:
    """One of each: two swaps, three deletions, two folders out, one in, two additions: 7 paths, 10 renames."""
    (folder / "a.txt").write_text("a2\n")
    (folder / "run.sh").write_text("#!/bin/sh\nexit 0\n")
    (folder / "b.txt").unlink()
    shutil.rmtree(folder / "dir")
    (folder / "dir").write_text("file\n")
    (folder / "new").mkdir()
    (folder / "new/e.txt").write_text("e\n")


@dataclass(frozen=True)
class Pair:
    """A scene with two commits, and what the working tree shows at either."""

    scene: Scene
    old: str
    new: str
    before: State
    after: State

    def promote(self) -> Promotion:
        return self.scene.promote(self.old, self.new)

    def restore(self) -> Promotion:
        return self.scene.restore(self.old, self.new)

    def torn(self) -> list[str]:
        """The paths that are neither old nor new."""
        seen = self.scene.files()
        paths = seen | self.before | self.after
        return [path for path in paths if seen.get(path) not in (self.before.get(path), self.after.get(path))]


def build_pair(scene: Scene, edit: Callable[[Path], object]) -> Pair:
    """Promote and restore once, to learn what either side shows."""
    old = scene.snapshot()
    new = scene.edited(old, edit)
    before = scene.files()
    assert scene.promote(old, new).refused is None
    after = scene.files()
    assert scene.restore(old, new).refused is None
    assert scene.files() == before
    return Pair(scene, old, new, before, after)


@pytest.fixture
def pair(scene: Scene) -> Pair:
    return build_pair(scene, small_edit)


@pytest.fixture
def make_pair() -> Callable[[Scene, Callable[[Path], object]], Pair]:
    return build_pair


@pytest.fixture
def build_scene() -> type[Scene]:
    return Scene
