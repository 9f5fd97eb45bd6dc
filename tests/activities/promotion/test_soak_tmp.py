"""Killed anywhere, disturbed anywhere, a promotion is finished or taken back as a whole."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import renames
from orch.workflows.model.promotion import Promotion
from orch.workflows.model.reason import PromotionReason

Scene = Any
Pair = Any
FORK = multiprocessing.get_context("fork")


def edited(result: Promotion) -> bool:
    return result.refused is not None and result.refused.code is PromotionReason.EDITED


def big_edit(folder: Path) -> None:
    """120 changes, 40 deletions, 40 additions, a folder that becomes a file and a file that becomes a folder."""
    for number in range(120):
        (folder / f"many/{number % 8}/{number}").write_text(f"new {number}\n" * 200)
    for number in range(120, 160):
        (folder / f"many/{number % 8}/{number}").unlink()
    for number in range(160, 200):
        path = folder / f"added/{number % 3}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"new {number}\n")
    shutil.rmtree(folder / "dir")
    (folder / "dir").write_text("file\n")
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    (folder / "a.txt/inner").write_text("inner\n")


@pytest.fixture
def big(scene: Scene, make_pair: Callable[..., Pair]) -> Pair:
    for number in range(160):
        path = scene.top / f"many/{number % 8}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"old {number}\n" * 100)
    return make_pair(scene, big_edit)


def test_killed_at_random_instants_every_path_is_old_or_new_and_a_rerun_finishes(big: Pair) -> None:
    private = big.scene.private()
    chance, span, mixed = random.Random(99), duration(big), 0
    for number in range(60):
        move, aim = (big.promote, big.after) if number % 2 == 0 else (big.restore, big.before)
        child = FORK.Process(target=move)
        child.start()
        if number % 4 < 2:
            child.join(chance.uniform(0.2, 1.0) * span)
        else:
            wait_for_plan(big.scene, child)
            child.join(chance.uniform(0, 0.05))
        child.kill()
        child.join()
        assert big.torn() == []
        mixed += big.scene.files() not in (big.before, big.after)
        assert move().refused is None
        assert big.scene.files() == aim
        assert big.scene.journals() == []
    assert mixed, "no kill fell between two renames"
    assert big.scene.private() == private


def wait_for_plan(scene: Scene, child: Any) -> None:
    """The renames take milliseconds: a kill that is to fall among them waits for the commit point."""
    while child.is_alive() and not any((scene.store.path / "journal").glob("*/plan.json")):
        time.sleep(0.0005)


def duration(pair: Pair) -> float:
    started = time.monotonic()
    pair.promote()
    pair.restore()
    return (time.monotonic() - started) / 2


def killed(monkeypatch: pytest.MonkeyPatch, call: str, nth: int, move: Callable[[], Promotion], *, late: bool) -> None:
    """Run `move` in a process that dies before or after its nth use of a rename."""
    real, count = getattr(renames, call), iter(range(1000))

    def rename(*args: Any) -> None:
        last = next(count) == nth
        if not last or late:
            real(*args)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(renames, call, rename)
        child = FORK.Process(target=move)
        child.start()
        child.join()
    assert child.exitcode == -signal.SIGKILL


def test_killed_before_any_rename_it_is_finished(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for nth in range(10):
        killed(monkeypatch, "_renameat2", nth, pair.promote, late=False)
        assert pair.torn() == []
        result = pair.promote()
        assert (result.tree, result.paths) == (pair.scene.tree(pair.new), 7)
        assert pair.scene.files() == pair.after
        pair.restore()
    assert pair.scene.journals() == []


def test_killed_after_any_rename_the_start_can_be_restored(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for nth in range(10):
        killed(monkeypatch, "_renameat2", nth, pair.promote, late=True)
        assert pair.torn() == []
        assert pair.restore().tree == pair.scene.tree(pair.old)
        assert pair.scene.files() == pair.before
    assert pair.scene.journals() == []


@pytest.mark.usefixtures("no_flags")
@pytest.mark.parametrize("call", ["_link", "_rename", "_unlink"])
def test_without_rename_flags_a_kill_is_healed_too(pair: Pair, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    for nth in range(3):
        killed(monkeypatch, call, nth, pair.promote, late=True)
        assert pair.torn() == []
        assert pair.promote().refused is None
        assert pair.scene.files() == pair.after
        pair.restore()


def disturbed(monkeypatch: pytest.MonkeyPatch, nth: int, act: Callable[[], object], pair: Pair) -> Promotion:
    """Promote while somebody acts right before the nth rename."""
    real, count = renames._renameat2, iter(range(1000))

    def rename(*args: Any) -> None:
        if next(count) == nth:
            act()
        real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(renames, "_renameat2", rename)
        result: Promotion = pair.promote()
        return result


@pytest.mark.parametrize(
    ("nth", "path"),
    [
        *((0, path) for path in ("a.txt", "b.txt", "dir/c.txt", "dir/deep/extra", "new/e.txt")),
        *((4, path) for path in ("b.txt", "run.sh", "dir/new", "new")),
        *((5, path) for path in ("a.txt", "dir", "dir/c.txt")),
        *((9, path) for path in ("a.txt", "b.txt", "dir", "new/e.txt")),
    ],
)
def test_a_file_saved_between_renames_is_kept_and_the_rest_taken_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, path: str, nth: int
) -> None:
    target, saved = pair.scene.top / path, pair.scene.work / "saved"

    def save() -> None:
        target.parent.mkdir(exist_ok=True)
        saved.write_text("saved just now\n")
        saved.replace(target)

    result = disturbed(monkeypatch, nth, save, pair)
    assert not saved.exists()
    assert edited(result)
    files = pair.scene.files()
    differing = {name for name, seen in files.items() if seen != pair.before.get(name)}
    assert {pair.scene.top.joinpath(name).read_text() for name in differing} == {"saved just now\n"}
    gone = pair.before.keys() - files.keys()
    assert all(name.startswith(path.partition("/")[0]) for name in gone)  # what was saved has taken their place
    assert pair.scene.journals() == []


def test_an_edit_in_place_through_an_open_file_is_not_lost(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pair.scene.top / "a.txt"
    with path.open("a", buffering=1) as editor:
        result = disturbed(monkeypatch, 9, lambda: editor.write("typed meanwhile\n"), pair)
    assert edited(result)
    assert path.read_text() == "a\ntyped meanwhile\n"
    assert (pair.scene.top / "b.txt").exists()


def test_an_edit_after_a_kill_is_kept_and_the_rest_taken_back(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pair.scene.top / "a.txt"
    killed(monkeypatch, "_renameat2", 7, pair.promote, late=True)
    assert path.read_text() == "a2\n"
    path.write_text("mine on top\n")
    result = pair.promote()
    assert edited(result)
    assert result.refused
    assert result.refused.data["paths"] == ("a.txt",)
    mode, _ = pair.before["a.txt"]
    assert pair.scene.files() == pair.before | {"a.txt": (mode, b"mine on top\n")}
    assert pair.scene.journals() == []


def test_a_kill_while_taking_back_is_healed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(monkeypatch, "_renameat2", 7, pair.promote, late=True)
    (pair.scene.top / "dir").write_text("in the way")
    killed(monkeypatch, "_renameat2", 2, pair.promote, late=True)
    (pair.scene.top / "dir").unlink()
    assert pair.promote().refused is None
    assert pair.scene.files() == pair.after


def test_leftovers_without_a_plan_are_cleared(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(monkeypatch, "flush", 0, pair.promote, late=False)
    (leftover,) = pair.scene.journals()
    assert list(leftover.glob("slots/*"))
    assert pair.scene.files() == pair.before
    assert pair.promote().paths == 7
    assert pair.scene.journals() == []
