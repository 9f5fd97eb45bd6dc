"""One live run at a time may promote into a working tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orch.activities import artifacts, reservations
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.store import Store


def test_tree_is_held_until_released_or_its_run_is_closed(
    make_repo: Callable[..., Path], home: Home, tmp_path: Path
) -> None:
    top = make_repo(tmp_path / "project")
    store = Store.of(home, inspect(top))

    assert reservations.reserve(home, store, top, "goal-a") == "goal-a"
    assert reservations.reserve(home, store, top, "goal-a") == "goal-a"
    assert reservations.reserve(home, store, top, "goal-b") == "goal-a"

    reservations.release(store, top, "goal-b")
    assert reservations.reserve(home, store, top, "goal-b") == "goal-a"

    artifacts.mark_closed(home, "goal-a")
    assert reservations.reserve(home, store, top, "goal-b") == "goal-b"

    reservations.release(store, top, "goal-b")
    assert reservations.reserve(home, store, top, "goal-c") == "goal-c"


def test_two_trees_of_one_store_do_not_stand_in_each_others_way(
    make_repo: Callable[..., Path], home: Home, tmp_path: Path
) -> None:
    top = make_repo(tmp_path / "project")
    store = Store.of(home, inspect(top))

    assert reservations.reserve(home, store, top, "goal-a") == "goal-a"
    assert reservations.reserve(home, store, tmp_path / "other", "goal-b") == "goal-b"
