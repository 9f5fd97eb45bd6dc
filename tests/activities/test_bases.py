"""The bases below overlay workspaces: each made once, whole or not at all, whatever is killed or full meanwhile."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from orch.activities.workspaces import bases
from orch.activities.workspaces.bases import bases_of, name_of, plain_base, tree_of
from orch.activities.workspaces.overlay import OverlayProvider
from orch.workflows.errors import RefusedError

OVERLAY = OverlayProvider()


@pytest.fixture
def here(bench: Callable[[Path], Any], make_repo: Callable[..., Path], tmp_path: Path) -> Any:
    """A bench over a repository with a few files."""
    made = bench(make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n", "sub/run.sh": "echo\n"}))
    made.provider = OVERLAY
    return made


def test_a_base_is_made_once_by_many_at_a_time(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, commit = [], here.baseline().commit
    real = bases._check_out

    def slow(*given: Any) -> None:
        made.append(given)
        time.sleep(0.1)
        real(*given)

    monkeypatch.setattr(bases, "_check_out", slow)
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: plain_base(here.store, commit), range(8)))
    assert (len(made), len(set(names))) == (1, 1)


def test_half_a_base_is_never_used(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = here.baseline().commit
    name = bases.name_of(here.store, commit)
    kit_left = bases_of(here.store) / f"{name}.new-0" / "tree"
    kit_left.mkdir(parents=True)
    (kit_left / "stale").touch()
    torn = bases_of(here.store) / name / "tree"
    torn.mkdir(parents=True)
    (torn / "stale").touch()
    here.open()
    assert {path.name for path in (torn.iterdir())} == {".git", "a.txt", "b.txt", "sub"}
    assert not kit_left.exists()


def test_a_full_disk_while_a_base_is_made_is_a_fault_of_the_host(kit: Any, tmp_path: Path, bench: Any) -> None:
    here = bench(kit.make_repo(tmp_path / "repo", {"big": os.urandom(1 << 20)}))
    commit, disk = here.baseline().commit, bases_of(here.store)
    disk.mkdir()
    script = (
        "import sys\nfrom pathlib import Path\nfrom orch.activities.home import Home\n"
        "from orch.activities.store import Store\n"
        "from orch.activities.workspaces.bases import plain_base\n"
        "plain_base(Store(Home(Path(sys.argv[1])), sys.argv[2]), sys.argv[3])"
    )
    argv = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=500k none "$0" && exec "$@"', str(disk)]
    python = [sys.executable, "-c", script, str(here.home.root), here.store.key, commit]
    done = subprocess.run([*argv, *python], capture_output=True, check=False, text=True)
    assert "HostFaultError" in done.stderr


def test_a_missing_filter_is_refused(kit: Any, here: Any) -> None:
    kit.write(here.repo, {".gitattributes": "b.txt filter=gone\n"})
    kit.git(here.repo, "config", "filter.gone.smudge", "/no/such/program")
    commit = here.baseline().commit
    kit.git(here.store.git_dir, "config", "filter.gone.required", "true")
    with pytest.raises(RefusedError, match="cannot be checked out"):
        OVERLAY.open(here.store, here.folder(), commit)
    assert not [*here.folder().glob("upper"), *bases_of(here.store).glob("*.new")]


def test_git_that_a_killed_process_left_is_in_nobody_s_way(here: Any) -> None:
    commit = here.baseline().commit
    old = bases_of(here.store) / f"{name_of(here.store, commit)}.new"
    stop = threading.Event()

    def git() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            with suppress(OSError):
                (old / "tree").mkdir(parents=True, exist_ok=True)
                (old / "tree" / f"late-{number}").touch()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(git)
        try:
            name = plain_base(here.store, commit)
        finally:
            stop.set()
    assert {path.name for path in (bases_of(here.store) / name / "tree").iterdir()} == {".git", "a.txt", "b.txt", "sub"}


@pytest.mark.parametrize("left", ["", "\0" * 40])
def test_a_tree_s_name_that_a_power_cut_left_half_written_is_asked_for_again(here: Any, left: str) -> None:
    commit = here.baseline().commit
    tree = tree_of(here.store, commit)
    (bases_of(here.store) / "of" / commit).write_text(left)
    assert tree_of(here.store, commit) == tree
