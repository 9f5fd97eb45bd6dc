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
    monkeypatch.delattr(os, "copy_file_range")
    carry(source, target, [Path(".env")])
    assert (target / ".env").read_text() == "SECRET"
