from __future__ import annotations

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orch.activities.home import STATE_VERSION, Home
from orch.worker.state import host_id, open_state, write_aside
from orch.workflows.errors import RefusedError


def test_a_new_state_directory_is_private_and_has_a_version(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "state")
    open_state(home)
    open_state(home)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert (home.root / "version").read_text().strip() == str(STATE_VERSION)


def test_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "version").write_text(f"{STATE_VERSION + 1}\n")
    with pytest.raises(RefusedError, match=f"version {STATE_VERSION + 1}") as refused:
        open_state(Home(tmp_path))
    assert "upgrade orch" in refused.value.hint
    assert (tmp_path / "version").read_text() == f"{STATE_VERSION + 1}\n"


def test_a_version_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("new")
    with pytest.raises(RefusedError, match="not a version"):
        open_state(Home(tmp_path))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RefusedError, match="cannot be used") as refused:
        open_state(Home(tmp_path / "file" / "state"))
    assert "ORCH_STATE" in refused.value.hint


def test_the_host_id_is_stable_and_the_same_for_all_who_ask_first(tmp_path: Path) -> None:
    home = Home(tmp_path)
    open_state(home)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: host_id(home), range(16)))
    assert len(found) == 1
    assert re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{6}", found.pop())
    assert [path.name for path in tmp_path.glob("*.new")] == []


def test_write_aside_replaces_the_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_aside(path, "a long first text")
    write_aside(path, "short")
    assert path.read_text() == "short"
    assert list(tmp_path.iterdir()) == [path]
