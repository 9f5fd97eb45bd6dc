"""Promotion into the working tree: what moves, what never does, what is refused."""

from __future__ import annotations

import fcntl
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orch.activities import promotion
from orch.workflows.model.promotion import Promotion
from orch.workflows.model.reason import PromotionReason

Scene = Any


def reason(result: Promotion) -> PromotionReason:
    assert result.refused is not None
    assert result.tree is None
    return result.refused.code


def edit(folder: Path) -> None:
    (folder / "a.txt").write_text("a2\n")
    (folder / "b.txt").unlink()
    (folder / "new").mkdir()
    (folder / "new/e.txt").write_text("e\n")


def test_changed_paths_move_and_nothing_else_does(scene: Scene) -> None:
    (scene.top / "debug.log").write_text("ignored")
    (scene.top / "dir/c.txt").write_text("dirty\n")
    old = scene.snapshot()
    new = scene.edited(old, edit)
    private = scene.private()
    before = scene.files()
    result = scene.promote(old, new)
    assert (result.tree, result.paths, result.refused) == (scene.tree(new), 3, None)
    after = scene.files()
    assert after["a.txt"][1] == b"a2\n"
    assert "b.txt" not in after
    assert after["new/e.txt"][1] == b"e\n"
    assert {path for path in before | after if before.get(path) != after.get(path)} == {"a.txt", "b.txt", "new/e.txt"}
    assert scene.private() == private
    assert scene.tree(scene.snapshot("after")) == scene.tree(new)
    assert scene.journals() == []


def test_a_second_promotion_finds_everything_there(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    scene.promote(old, new)
    files = scene.files()
    result = scene.promote(old, new)
    assert (result.tree, result.paths) == (scene.tree(new), 0)
    assert scene.files() == files


def test_paths_that_are_new_already_are_left_alone(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    (scene.top / "a.txt").write_text("a2\n")
    assert scene.promote(old, new).paths == 2


@pytest.mark.parametrize(
    ("path", "content"),
    [("a.txt", "mine\n"), ("b.txt", "mine\n"), ("new/e.txt", "mine\n"), ("new", "a file\n")],
)
def test_an_edit_meanwhile_is_refused_with_nothing_touched(scene: Scene, path: str, content: str) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    (scene.top / path).parent.mkdir(exist_ok=True)
    (scene.top / path).write_text(content)
    files, private = scene.files(), scene.private()
    result = scene.promote(old, new)
    assert reason(result) is PromotionReason.EDITED
    assert result.refused
    assert result.refused.data == {"paths": (path,), "count": 1}
    assert (scene.files(), scene.private()) == (files, private)
    assert scene.journals() == []


@pytest.mark.parametrize("setting", ["core.ignoreStat", "core.fsmonitor", "core.untrackedCache", "index.sparse"])
def test_no_setting_hides_an_edit(scene: Scene, setting: str) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    scene.git.run("config", setting, "true")
    (scene.top / "a.txt").write_text("x\n")
    assert reason(scene.promote(old, new)) is PromotionReason.EDITED


def test_an_edit_elsewhere_is_nobodys_business(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    (scene.top / "dir/c.txt").write_text("later\n")
    (scene.top / "untracked").write_text("later\n")
    assert scene.promote(old, new).paths == 3
    assert (scene.top / "dir/c.txt").read_text() == "later\n"


def test_an_ignored_file_in_the_way_counts_as_an_edit(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: ((folder / ".gitignore").unlink(), (folder / "x.log").write_text("x")))
    (scene.top / "x.log").write_text("the user's own")
    result = scene.promote(old, new)
    assert reason(result) is PromotionReason.EDITED
    assert result.refused
    assert result.refused.data["paths"] == ("x.log",)
    assert (scene.top / "x.log").read_text() == "the user's own"
    assert (scene.top / ".gitignore").exists()


def test_at_most_ten_paths_are_named_and_all_are_counted(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: [(folder / f"n{i}").write_text("n") for i in range(15)])
    for i in range(12):
        (scene.top / f"n{i}").write_text("mine")
    refused = scene.promote(old, new).refused
    assert refused is not None
    assert (len(refused.data["paths"]), refused.data["count"]) == (10, 12)


def test_restore_brings_the_dirty_start_back(scene: Scene) -> None:
    (scene.top / "a.txt").write_bytes(b"dirty \xff\r\nno end")
    (scene.top / "dir/new.txt").write_text("untracked\n")
    (scene.top / "a.txt").chmod(0o600)
    before, private = scene.files(), scene.private()

    def more(folder: Path) -> None:
        edit(folder)
        (folder / "dir/new.txt").unlink()

    old = scene.snapshot()
    new = scene.edited(old, more)
    assert scene.promote(old, new).paths == 4
    assert scene.restore(old, new).tree == scene.tree(old)
    assert scene.files() == before
    assert scene.private() == private
    assert not (scene.top / "new").exists()


def test_an_operation_in_progress_is_named_and_left_alone(scene: Scene) -> None:
    git = scene.git
    git.run("checkout", "-q", "-b", "side")
    (scene.top / "a.txt").write_text("side\n")
    git.run("commit", "-q", "-a", "-m", "side")
    git.run("checkout", "-q", "main")
    (scene.top / "a.txt").write_text("main\n")
    git.run("commit", "-q", "-a", "-m", "main")
    assert not git.ok("rebase", "side")
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: (folder / "b.txt").write_text("b2\n"))
    files, private = scene.files(), scene.private()
    result = scene.promote(old, new)
    assert reason(result) is PromotionReason.IN_PROGRESS
    assert result.refused
    assert result.refused.data == {"operation": "rebase"}
    assert (scene.files(), scene.private()) == (files, private)


def test_another_promotion_into_the_same_tree_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion, "PATIENCE", 0.2)
    old = scene.snapshot()
    new = scene.edited(old, edit)
    name = hashlib.sha256(os.fsencode(scene.top)).hexdigest()[:16]
    with (scene.store.path / f"promote-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert reason(scene.promote(old, new)) is PromotionReason.BUSY
    assert scene.promote(old, new).paths == 3


def test_two_at_once_take_turns(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: scene.promote(old, new), range(2)))
    assert sorted(result.paths for result in results) == [0, 3]
    assert {result.tree for result in results} == {scene.tree(new)}


def test_mode_none_does_nothing(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, edit)
    files = scene.files()
    result = scene.promote(old, new, "none")
    assert (result.tree, result.paths, result.refused) == (None, 0, None)
    assert scene.files() == files


def test_a_linked_worktree_is_promoted_alone(scene: Scene) -> None:
    linked = scene.work / "linked"
    scene.git.run("worktree", "add", "-q", "-b", "other", str(linked))
    old = scene.snapshot()
    new = scene.edited(old, edit)
    files = scene.files()
    there = scene.request(old, new).model_copy(update={"repo": str(linked)})
    assert promotion.promote(scene.home, there).paths == 3
    assert (linked / "a.txt").read_text() == "a2\n"
    assert scene.files() == files
