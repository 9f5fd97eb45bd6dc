"""Carried paths are copied, never shared, and nothing checked out is overwritten."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.carry import carried_paths, carry


@pytest.fixture
def source(tmp_path: Path, kit: Any) -> Path:
    kit.write(
        tmp_path / "source",
        {"node_modules/a/index.js": "a", "packages/x/node_modules/b.js": "b", ".env": "SECRET", "src/m.py": "m"},
    )
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["node_modules"], ["node_modules", "packages/x/node_modules"]),
        (["/node_modules/"], ["node_modules"]),
        ([".env", "*.local"], [".env"]),
        (["packages/*/node_modules"], ["packages/x/node_modules"]),
        (["**/*.js", "!b.js"], ["node_modules/a/index.js"]),
        ([], []),
        (["nothing"], []),
    ],
)
def test_globs_find_the_topmost_paths(source: Path, globs: list[str], expected: list[str]) -> None:
    assert [str(path) for path in carried_paths(source, globs)] == expected


def test_git_folders_are_neither_found_nor_copied(kit: Any, source: Path, target: Path) -> None:
    kit.make_repo(source / "node_modules" / "cloned")
    assert carried_paths(source, ["HEAD"]) == []
    carry(source, target, [Path("node_modules")])
    assert sorted(path.name for path in (target / "node_modules" / "cloned").iterdir()) == ["a.txt"]


def test_copies_keep_mode_and_time_and_share_no_inode(source: Path, target: Path) -> None:
    tool = source / "node_modules" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    os.utime(tool, (5, 5))
    carry(source, target, [Path("node_modules"), Path(".env")])
    copy = target / "node_modules" / "tool"
    assert (copy.stat().st_mode, copy.stat().st_mtime) == (tool.stat().st_mode, 5)
    assert copy.stat().st_ino != tool.stat().st_ino
    assert copy.stat().st_nlink == 1
    assert (target / ".env").read_text() == "SECRET"
    assert sorted(path.name for path in target.rglob("*.orch-new")) == []


def test_what_is_there_already_stays(source: Path, target: Path) -> None:
    (target / "node_modules" / "a").mkdir(parents=True)
    (target / "node_modules" / "a" / "index.js").write_text("checked out")
    carry(source, target, [Path("node_modules")])
    carry(source, target, [Path("node_modules")])
    assert (target / "node_modules" / "a" / "index.js").read_text() == "checked out"


def test_links_stay_links_but_never_lead_to_the_source(source: Path, target: Path, tmp_path: Path) -> None:
    modules = source / "node_modules"
    (modules / "relative").symlink_to("a/index.js")
    (modules / "outside").symlink_to("/usr/bin/env")
    (modules / "inside").symlink_to(source / "src")
    (modules / "dangling").symlink_to("nowhere")
    (source / "deps").symlink_to(modules)
    carry(source, target, [Path("node_modules"), Path("deps")])
    copied = {name: str((target / "node_modules" / name).readlink()) for name in ("relative", "outside", "dangling")}
    assert copied == {"relative": "a/index.js", "outside": "/usr/bin/env", "dangling": "nowhere"}
    assert (target / "node_modules" / "inside").readlink() == target / "src"
    assert not (target / "deps").is_symlink()
    assert (target / "deps" / "a" / "index.js").read_text() == "a"


def test_pipes_are_skipped_and_empty_folders_kept(source: Path, target: Path) -> None:
    os.mkfifo(source / "node_modules" / "pipe")
    (source / "node_modules" / "empty").mkdir()
    carry(source, target, [Path("node_modules"), Path("vanished")])
    assert sorted(path.name for path in (target / "node_modules").iterdir()) == ["a", "empty"]


def test_large_and_empty_files_arrive_whole(source: Path, target: Path) -> None:
    (source / "big").write_bytes(os.urandom(3_000_001))
    (source / "none").touch()
    carry(source, target, [Path("big"), Path("none")])
    assert (target / "big").read_bytes() == (source / "big").read_bytes()
    assert (target / "none").read_bytes() == b""


def test_copying_works_where_the_kernel_cannot_share(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "big").write_bytes(os.urandom(3_000_001))
    monkeypatch.delattr(os, "copy_file_range")
    carry(source, target, [Path(".env"), Path("big")])
    assert (target / ".env").read_text() == "SECRET"
    assert (target / "big").read_bytes() == (source / "big").read_bytes()


def test_holes_stay_holes(source: Path, target: Path) -> None:
    with (source / "image").open("wb") as file:
        file.write(b"begin")
        file.truncate(1 << 36)
        file.seek(1 << 30)
        file.write(b"middle")
    carry(source, target, [Path("image")])
    with (target / "image").open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(1 << 30)
        assert file.read(7) == b"middle\0"
    assert (target / "image").stat().st_size == 1 << 36
    assert (target / "image").stat().st_blocks == (source / "image").stat().st_blocks


def test_half_a_copy_is_made_anew(source: Path, target: Path) -> None:
    half = target / "node_modules.orch-new" / "a"
    half.mkdir(parents=True)
    (half / "index.js").write_text("ha")
    carry(source, target, [Path("node_modules")])
    assert (target / "node_modules" / "a" / "index.js").read_text() == "a"
    assert [path.name for path in target.iterdir()] == ["node_modules"]


def test_link_in_the_place_of_a_carried_folder_is_carried_or_left_out_like_it(source: Path) -> None:
    """A link that leads nowhere may stand for a folder: a glob of folders means it, too."""
    (source / "deps").symlink_to("nowhere")
    assert carried_paths(source, ["deps/"]) == [Path("deps")]


def test_thousands_of_files_are_copied_whole_in_their_order_of_folders(source: Path, target: Path) -> None:
    for number in range(1500):
        path = source / "node_modules" / f"p{number % 30}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))
    os.utime(source / "node_modules" / "p1", (7, 7))
    carry(source, target, [Path("node_modules")])
    assert sum(path.is_file() for path in (target / "node_modules").rglob("*")) == 1501
    assert (target / "node_modules/p13/f1483").read_text() == "1483"
    assert (target / "node_modules/p1").stat().st_mtime == 7
