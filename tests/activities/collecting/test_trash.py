"""What was renamed away goes, whatever an agent made of it; what only looks like it stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from orch.activities.collecting import trash
from orch.activities.home import Home
from orch.activities.workspaces.removal import remove_tree


@pytest.mark.parametrize("name", ["trash-can", ".trash-0123abcd"])
def test_what_agents_call_so_is_their_work(state: Any, name: str) -> None:
    attempt = state.attempt("run")
    mine = [attempt / part / name for part in ("tree", "upper", "home", "measure/tree", "measure/upper")]
    for folder in mine:
        folder.mkdir(parents=True)
    left = attempt / "measure" / ".trash-0123abcd"
    left.mkdir()
    trash.sweep(state.home)
    assert all(folder.exists() for folder in mine)
    assert not left.exists()


def test_a_run_or_a_repository_called_trash_is_none(home: Home) -> None:
    for folder in (home.run("trash-0123456789ab"), home.store("trash-0123abcd")):
        folder.mkdir(parents=True)
    assert list(trash.lying(home)) == []


def test_a_folder_deeper_than_a_path_is_long_goes_and_nothing_it_links_to(tmp_path: Path) -> None:
    top, other = tmp_path / "top", tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        os.symlink(other, "link", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(top)
    assert not top.exists()
    assert (other / "file").exists()
