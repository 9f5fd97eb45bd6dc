"""Promotion to a branch: one commit, one new ref, nothing else of the repository moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orch.activities.git import Git
from orch.activities.home import Home
from orch.activities.promotion import promote
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.workflows.model.promotion import Promote, PromoteTarget, Promotion
from orch.workflows.model.reason import PromotionReason

Scene = Any


def code(result: Promotion) -> PromotionReason:
    assert result.refused is not None
    assert result.tree is None
    return result.refused.code


def edit(folder: Path) -> None:
    (folder / "a.txt").write_text("a2\n")
    (folder / "added.txt").write_text("added\n")


def changed(scene: Scene, private: dict[str, Any]) -> set[str]:
    now = scene.private()
    return {path for path in now | private if now.get(path) != private.get(path)}


def test_a_branch_appears_and_nothing_else_changes(scene: Scene) -> None:
    (scene.top / "dir/c.txt").write_text("dirty\n")
    old = scene.snapshot()
    new = scene.edited(scene.edited(old, edit, name="step"), lambda f: (f / "b.txt").unlink())
    hook = scene.top / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {scene.work}/hook-ran\n")
    hook.chmod(0o755)
    scene.git.run("config", "fetch.prune", "true")
    private, files = scene.private(), scene.files()
    result = scene.promote(old, new, "branch:orch/result")
    assert (result.tree, result.paths, result.refused) == (scene.tree(new), 3, None)
    assert changed(scene, private) == {"refs/heads/orch/result", "logs/refs/heads/orch/result"}
    assert scene.files() == files
    assert not (scene.work / "hook-ran").exists()
    log = scene.git.text("log", "--format=%s %P", "orch/result").splitlines()
    assert log[0] == f"orch: run-1 {old}"
    assert log[1].startswith("orch: the working tree at the start of start ")
    assert scene.git.ok("fsck", "--connectivity-only")


def test_a_clean_start_adds_one_commit_to_the_users_own(scene: Scene) -> None:
    head = scene.git.text("rev-parse", "HEAD")
    new = scene.edited(scene.snapshot(), edit)
    scene.promote(head, new, "branch:result")
    assert scene.git.text("rev-parse", "result^") == head


def test_a_result_that_changed_nothing_is_the_start(scene: Scene) -> None:
    old = scene.snapshot()
    assert scene.promote(old, old, "branch:result").tree == scene.tree(old)
    assert scene.git.text("rev-parse", "result") == old


def test_promoting_again_finds_the_branch_there(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    scene.promote(old, new, "branch:result")
    private = scene.private()
    result = scene.promote(old, new, "branch:result")
    assert (result.tree, result.paths) == (scene.tree(new), 0)
    assert scene.private() == private


def test_an_existing_branch_is_never_moved(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    scene.git.run("branch", "taken")
    scene.git.run("branch", "deep/taken")
    private = scene.private()
    assert code(scene.promote(old, new, "branch:taken")) is PromotionReason.BRANCH_EXISTS
    assert code(scene.promote(old, new, "branch:taken/below")) is PromotionReason.BRANCH_EXISTS
    assert code(scene.promote(old, new, "branch:deep")) is PromotionReason.BRANCH_EXISTS
    assert scene.private() == private


@pytest.mark.parametrize("name", ["a..b", "-x", "HEAD", "sp ace", "@{-1}", "x.lock", "refs:heads", "a\nb"])
def test_names_that_git_refuses_are_refused(scene: Scene, name: str) -> None:
    old = scene.snapshot()
    private = scene.private()
    assert code(scene.promote(old, old, f"branch:{name}")) is PromotionReason.BRANCH_INVALID
    assert scene.private() == private


def test_a_ref_that_cannot_be_written_is_named(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    (scene.top / ".git/refs/heads/result.lock").write_text("")
    result = scene.promote(old, new, "branch:result")
    assert code(result) is PromotionReason.NOT_WRITABLE
    assert result.refused
    assert "result.lock" in str(result.refused.data["cause"])


def test_it_works_while_other_worktrees_and_a_rebase_are_open(scene: Scene) -> None:
    scene.git.run("worktree", "add", "-q", "-b", "other", str(scene.work / "linked"))
    (scene.top / ".git/rebase-merge").mkdir()
    old = scene.snapshot()
    new = scene.edited(old, edit)
    assert scene.promote(old, new, "branch:result").tree == scene.tree(new)
    assert code(scene.promote(old, new, "branch:other")) is PromotionReason.BRANCH_EXISTS


def test_a_repository_without_commits_gets_its_first_branch(tmp_path: Path, build_scene: Any) -> None:
    top = tmp_path / "fresh"
    top.mkdir()
    git = Git(top)
    git.run("init", "-q", "-b", "main")
    (top / "a.txt").write_text("a\n")
    home = Home(tmp_path / "state")
    (tmp_path / "work").mkdir()
    scene = build_scene(home, top, Store.of(home, inspect(top)), tmp_path / "work")
    old = scene.snapshot()
    new = scene.edited(old, edit)
    private = scene.private()
    assert code(scene.promote(old, new, "branch:main")) is PromotionReason.BRANCH_EXISTS
    assert scene.private() == private
    assert scene.promote(old, new, "branch:result").tree == scene.tree(new)
    assert changed(scene, private) == {"refs/heads/result", "logs/refs/heads/result"}
    assert scene.promote(old, new).tree == scene.tree(new)


def test_a_shallow_clone_takes_the_branch_too(scene: Scene, tmp_path: Path, build_scene: Any) -> None:
    (scene.top / "a.txt").write_text("second\n")
    scene.git.run("commit", "-q", "-a", "-m", "second")
    top = tmp_path / "shallow"
    scene.git.run("clone", "-q", "--depth", "1", f"file://{scene.top}", str(top))
    shallow = build_scene(scene.home, top, Store.of(scene.home, inspect(top)), scene.work)
    old = shallow.snapshot()
    new = shallow.edited(old, lambda folder: (folder / "b.txt").write_text("b2\n"))
    request = Promote(
        run="run-1", repo=str(top), store=shallow.store.key, old=old, new=new, target=PromoteTarget.parse("branch:r")
    )
    private = shallow.private()
    assert promote(scene.home, request).tree == shallow.tree(new)
    assert changed(shallow, private) == {"refs/heads/r", "logs/refs/heads/r"}
