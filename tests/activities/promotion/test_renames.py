"""Renames that never overwrite, with and without the kernel's flags."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orch.activities import renames
from orch.activities.marks import opened
from orch.activities.renames import Spot

Scene = Any
FORK = multiprocessing.get_context("fork")


@pytest.fixture(params=["flags", "links"])
def either(request: pytest.FixtureRequest) -> None:
    """Both ways: with the kernel's flags, and on a file system that knows none."""
    if request.param == "links":
        request.getfixturevalue("no_flags")


@pytest.fixture
def spots(tmp_path: Path) -> Iterator[tuple[Spot, Spot]]:
    """Two names in two folders; the first holds a file."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one/x").write_text("first")
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        yield Spot(one, "x"), Spot(two, "y")


@pytest.mark.usefixtures("either")
def test_a_move_needs_a_free_name(spots: tuple[Spot, Spot], tmp_path: Path) -> None:
    (tmp_path / "two/y").write_text("second")
    with pytest.raises(FileExistsError):
        renames.move(*spots)
    (tmp_path / "two/y").unlink()
    renames.move(*spots)
    assert (tmp_path / "two/y").read_text() == "first"
    assert not (tmp_path / "one/x").exists()


@pytest.mark.usefixtures("either")
def test_folders_and_links_move_as_they_are(spots: tuple[Spot, Spot], tmp_path: Path) -> None:
    (tmp_path / "one/link").symlink_to("nowhere")
    (tmp_path / "one/folder/inner").mkdir(parents=True)
    for name in ("link", "folder"):
        renames.move(Spot(spots[0].folder, name), Spot(spots[1].folder, name))
    assert str((tmp_path / "two/link").readlink()) == "nowhere"
    assert (tmp_path / "two/folder/inner").is_dir()
    (tmp_path / "one/folder").mkdir()
    with pytest.raises(FileExistsError):
        renames.move(Spot(spots[0].folder, "folder"), Spot(spots[1].folder, "folder"))


@pytest.mark.usefixtures("either")
def test_an_exchange_swaps_a_file_and_a_link(spots: tuple[Spot, Spot], tmp_path: Path) -> None:
    (tmp_path / "two/y").symlink_to("nowhere")
    renames.exchange(*spots)
    assert str((tmp_path / "one/x").readlink()) == "nowhere"
    assert (tmp_path / "two/y").read_text() == "first"
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["x"]


@pytest.mark.usefixtures("either")
def test_an_exchange_needs_both(spots: tuple[Spot, Spot], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        renames.exchange(*spots)
    assert (tmp_path / "one/x").read_text() == "first"


def test_other_faults_are_raised_as_they_are(spots: tuple[Spot, Spot]) -> None:
    with pytest.raises(OSError, match=r"[Bb]ad file descriptor"):
        renames.move(spots[0], Spot(-1, "y"))


def test_folders_reach_each_other_on_one_mount_only(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert renames.reaches(tmp_path, tmp_path / "other")
    assert not renames.reaches(tmp_path, Path("/proc/self"))
    with opened(tmp_path) as folder:
        renames.flush(folder)
