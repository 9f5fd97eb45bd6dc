"""Workspaces are exactly the commit, side by side, and go away whatever was done to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orch.activities.carry import carry

CHURN = """
import sys; from pathlib import Path
from orch.activities.home import Home; from orch.activities.store import Store
from orch.activities.workspaces.worktree import WorktreeProvider
root, key, commit, name = sys.argv[1:]; store = Store(Home(Path(root)), key)
for turn in range(6):
    tree = WorktreeProvider().open(store, Path(root) / name / str(turn), commit)
    assert store.git.at(tree).with_env(GIT_DIR=tree / ".git").text("status", "--porcelain") == "", turn
    if turn % 2:
        WorktreeProvider().close(store, Path(root) / name / str(turn))
"""


@pytest.fixture
def here(tmp_path: Path, make_repo: Callable[..., Path], bench: Any) -> Any:
    return bench(
        make_repo(tmp_path / "repo", {"a.txt": "one\n", "dir/b.txt": "two\n", "run.sh": "x", ".gitignore": "*.x\n"})
    )


def entries(here: Any) -> list[Path]:
    """The worktrees the store knows."""
    folder = here.store.git_dir / "worktrees"
    return list(folder.iterdir()) if folder.exists() else []


def test_workspace_is_the_commit_on_a_detached_head(kit: Any, here: Any) -> None:
    kit.write(here.repo, {"a.txt": "dirty\n"})
    tree, baseline = here.open(), here.baseline()
    assert kit.git(tree, "status", "--porcelain") == ""
    assert kit.git(tree, "rev-parse", "HEAD") == baseline.commit
    assert kit.git(tree, "branch", "--show-current") == ""
    assert kit.git(tree, "write-tree") == baseline.tree
    assert kit.git(tree, "log", "--format=%s") == "orch: the working tree at the start of run\nfirst"
    pristine, own = here.folder() / "index", here.provider.writable(here.store, here.folder())[0] / "index"
    assert pristine.read_bytes() == own.read_bytes()
    assert pristine.stat().st_mtime_ns <= own.stat().st_mtime_ns


def test_pristine_index_keeps_its_time(here: Any) -> None:
    here.open()
    pristine, own = here.folder() / "index", here.provider.writable(here.store, here.folder())[0] / "index"
    assert pristine.stat().st_mtime_ns == own.stat().st_mtime_ns


def test_agents_may_use_git_and_reach_nobody(kit: Any, here: Any) -> None:
    before = kit.fingerprint(here.repo)
    one, two = here.open(1), here.open(2)
    kit.write(one, {"a.txt": "mine\n"})
    kit.git(one, "commit", "-q", "-a", "-m", "mine")
    kit.git(one, "gc", "-q", "--prune=now")
    kit.git(one, "checkout", "-q", "-b", "main")
    assert kit.git(two, "status", "--porcelain") == ""
    kit.git(two, "worktree", "prune")
    kit.write(two, {"a.txt": "two\n"})
    assert (here.snapshot(1).changed, here.snapshot(2).changed) == (1, 1)
    assert kit.fingerprint(here.repo) == before
    assert here.sound()


def test_polling_does_not_disturb_an_agent(kit: Any, here: Any) -> None:
    tree, done = here.open(), threading.Event()

    def poll() -> None:
        git = here.store.git.at(tree).with_env(GIT_DIR=tree / ".git")
        while not done.is_set():
            git.attempt("status", "--porcelain")

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        for turn in range(30):
            kit.write(tree, {"a.txt": f"{turn}\n"})
            kit.git(tree, "add", "a.txt")
    finally:
        done.set()
        poller.join()


def test_processes_open_and_close_side_by_side(kit: Any, here: Any) -> None:
    before, commit = kit.fingerprint(here.repo), here.baseline().commit
    command = [sys.executable, "-c", CHURN, here.home.root, here.store.key, commit]
    churners = [subprocess.Popen([*command, f"w{n}"], stderr=subprocess.PIPE) for n in range(4)]
    while any(process.poll() is None for process in churners):
        subprocess.run(["git", "worktree", "prune"], cwd=here.store.git_dir, check=False, capture_output=True)
    assert [process.communicate()[1] for process in churners] == [b""] * 4
    assert len(entries(here)) == 12
    assert kit.fingerprint(here.repo) == before


def test_locks_of_others_do_not_matter(kit: Any, here: Any) -> None:
    kit.write(here.repo, {"a.txt": "dirty\n"})
    assert here.store
    held = ("config.lock", "HEAD.lock", "index.lock", "packed-refs.lock", "shallow.lock")
    kit.write(here.repo / ".git", dict.fromkeys(held, ""))
    kit.write(here.store.git_dir, {"config.lock": ""})
    before = kit.fingerprint(here.repo)
    kit.write(here.open(), {"new": "x"})
    assert here.snapshot().changed == 1
    here.close()
    assert all((here.repo / ".git" / name).exists() for name in held)
    assert kit.fingerprint(here.repo) == before


def test_threads_open_side_by_side(kit: Any, here: Any) -> None:
    commit = here.baseline().commit
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda n: here.open(n, commit), range(1, 9)))
    assert all(kit.git(tree, "status", "--porcelain") == "" for tree in trees)


def test_leftovers_of_an_interrupted_opening_are_replaced(kit: Any, here: Any) -> None:
    tree = here.open()
    admin = entries(here)[0]
    kit.write(tree, {"left": "over"})
    (tree / "a.txt").unlink()
    assert kit.git(here.open(), "status", "--porcelain") == ""
    shutil.rmtree(admin)
    assert kit.git(here.open(), "status", "--porcelain") == ""
    shutil.rmtree(tree)
    kit.write(here.store.path, {f"entry-{admin.name}/HEAD": "torn"})
    assert kit.git(here.open(), "status", "--porcelain") == ""
    assert len(entries(here)) == 1


@pytest.mark.parametrize("name", ["with space", "quo'te\"d", "100%", "new\nline", "ünï", "-n"])
def test_any_folder_name_works(kit: Any, here: Any, tmp_path: Path, name: str) -> None:
    tree = here.provider.open(here.store, tmp_path / name, here.baseline().commit)
    assert kit.git(tree, "status", "--porcelain") == ""
    here.provider.close(here.store, tmp_path / name)
    assert list((tmp_path / name).iterdir()) == []
    assert entries(here) == []


@pytest.mark.parametrize("damage", ["none", "git", "tree", "entry", "locked", "read-only", "file", "folder"])
def test_closing_works_after_any_damage(kit: Any, here: Any, damage: str) -> None:
    tree = here.open()
    if damage == "git":
        (tree / ".git").unlink()
    elif damage == "tree":
        shutil.rmtree(tree)
    elif damage == "entry":
        shutil.rmtree(entries(here)[0])
    elif damage == "locked":
        kit.git(tree, "worktree", "lock", str(tree))
    elif damage == "read-only":
        (tree / "dir").chmod(0o500)
        tree.chmod(0o500)
    elif damage == "file":
        shutil.rmtree(tree)
        tree.write_text("not a folder")
    elif damage == "folder":
        shutil.rmtree(here.folder())
    here.close()
    here.close()
    assert not os.path.lexists(tree)
    assert entries(here) == []
    assert not here.folder().exists() or list(here.folder().iterdir()) == []
    assert kit.git(here.store.git_dir, "worktree", "list", "--porcelain").count("worktree ") == 1


@pytest.mark.parametrize("swapped", ["tree", "folder"])
def test_link_in_the_place_of_a_workspace_is_not_followed(kit: Any, here: Any, swapped: str) -> None:
    sibling = here.open(2)
    here.open(1)
    path = here.folder(1) / "tree" if swapped == "tree" else here.folder(1)
    shutil.rmtree(path)
    path.symlink_to(sibling if swapped == "tree" else here.folder(2))
    here.close(1)
    assert not os.path.lexists(path)
    assert kit.git(sibling, "status", "--porcelain") == ""
    assert len(entries(here)) == 1


def test_links_inside_a_workspace_are_removed_not_followed(here: Any, tmp_path: Path, kit: Any) -> None:
    kit.write(tmp_path / "shared", {"pkg/index.js": "x"})
    tree = here.open()
    (tree / "node_modules").symlink_to(tmp_path / "shared")
    here.close()
    assert (tmp_path / "shared" / "pkg" / "index.js").read_text() == "x"


def test_lost_workspace_is_made_again_from_its_snapshot(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.write(tree, {"a.txt": "result\n"})
    snapshot = here.snapshot()
    shutil.rmtree(tree)
    again = here.open(1, snapshot.commit)
    assert (again / "a.txt").read_text() == "result\n"
    assert kit.git(again, "write-tree") == snapshot.tree


def test_git_above_is_not_touched_by_a_workspace_without_its_own(kit: Any, here: Any) -> None:
    before = kit.fingerprint(here.repo)
    tree = here.open()
    (tree / ".git").unlink()
    done = subprocess.run(["git", "add", "-A"], cwd=tree, check=False, capture_output=True)
    assert done.returncode
    kit.write(tree, {"new": "x"})
    assert here.snapshot().paths == ("new",)
    assert kit.fingerprint(here.repo) == before


def test_writable_places_are_the_entry_and_the_objects(here: Any) -> None:
    tree = here.open()
    admin, objects = here.provider.writable(here.store, here.folder())
    assert f"gitdir: {admin}\n" == (tree / ".git").read_text()
    assert objects == here.store.git_dir / "objects"


def test_unknown_commit_leaves_nothing_behind(here: Any) -> None:
    from orch.workflows.errors import RefusedError

    with pytest.raises(RefusedError, match="cannot be checked out"):
        here.open(1, "1" * 40)
    assert list(here.folder().iterdir()) == []
    assert entries(here) == []


def test_carried_copy_is_writable_without_reaching_the_user(kit: Any, here: Any) -> None:
    kit.write(here.repo, {"deps.x/pkg/a.js": "a\n"})
    before = kit.fingerprint(here.repo)
    tree = here.open()
    carry(here.repo, tree, [Path("deps.x")])
    with (tree / "deps.x" / "pkg" / "a.js").open("r+") as file:
        file.write("b")
    here.close()
    assert kit.fingerprint(here.repo) == before
