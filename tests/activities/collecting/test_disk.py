"""Sizes are what `du` counts and what the disk gets back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from orch.activities.collecting.disk import freed_by


def du(*paths: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", "-c", *map(str, paths)], capture_output=True, check=True, text=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_blocks_are_counted_not_lengths_as_du_does(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "small").write_text("x")
    (folder / "large").write_bytes(os.urandom(1_000_000))
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    (folder / "out").symlink_to("/usr")

    assert freed_by([folder]) == du(folder)
    assert freed_by([folder]) < 2_000_000


def test_file_with_another_name_outside_frees_nothing_and_with_all_names_inside_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    empty = freed_by([folder])
    (folder / "pack").write_bytes(os.urandom(1_000_000))
    (folder / "twin").hardlink_to(folder / "pack")
    twice = freed_by([folder])
    (tmp_path / "users").hardlink_to(folder / "pack")

    assert twice == du(folder)
    assert freed_by([folder]) == empty
    assert freed_by([folder, tmp_path / "users"]) == twice


def test_what_is_not_there_frees_nothing(tmp_path: Path) -> None:
    assert freed_by([tmp_path / "nothing"]) == 0
