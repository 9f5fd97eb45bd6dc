"""Slots: room on a host that outlives its holder's process."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from orch.activities.slots import claim, held, release


def test_a_name_keeps_its_slot(tmp_path: Path) -> None:
    folder = tmp_path / "slots"
    assert [claim(folder, name, 2) for name in ("a", "b", "a", "c", "b")] == [0, 1, 0, None, 1]
    assert held(folder) == {0: "a", 1: "b"}


def test_a_released_slot_is_free_for_the_next(tmp_path: Path) -> None:
    claim(tmp_path, "a", 2)
    claim(tmp_path, "b", 2)
    release(tmp_path, "a")
    release(tmp_path, "a")
    assert claim(tmp_path, "c", 2) == 0


def test_a_smaller_capacity_counts_what_is_held_above_it(tmp_path: Path) -> None:
    for name in "abcd":
        claim(tmp_path, name, 4)
    release(tmp_path, "a")
    release(tmp_path, "b")
    assert claim(tmp_path, "e", 2) is None
    assert claim(tmp_path, "d", 2) == 3
    release(tmp_path, "d")
    assert claim(tmp_path, "e", 2) == 0


def test_a_claim_that_was_killed_half_way_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    assert held(tmp_path) == {}
    assert claim(tmp_path, "a", 1) == 0


def test_nothing_is_held_where_nothing_was_claimed(tmp_path: Path) -> None:
    assert held(tmp_path / "missing") == {}


def test_processes_never_share_a_slot(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        got = list(pool.map(claim, [tmp_path] * 20, [f"n{n}" for n in range(20)], [8] * 20))
    assert sorted(index for index in got if index is not None) == list(range(8))
    assert len(held(tmp_path)) == 8
