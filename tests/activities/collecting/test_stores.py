"""What stores hold for nobody: packs, layers of overlays, and files that the user's repository no longer shares."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orch.activities.campaigns import campaign_ref
from orch.activities.collecting.found import Collected
from orch.activities.collecting.plan import Policy, collect
from orch.activities.home import Home
from orch.activities.workspaces.bases import boot

NOBODY = frozenset[str]()
Age = Callable[..., None]


def kinds(found: list[Collected]) -> list[str]:
    return [item.kind for item in found]


def du(*paths: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", "-c", *map(str, paths)], capture_output=True, check=True, text=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_pack_goes_when_nothing_in_it_is_needed_and_stays_when_something_is(state: Any, age: Age) -> None:
    packs = state.store.git_dir / "objects" / "pack"
    for run in ("old", "kept"):
        state.begin(run)
        commit = state.pin(run, run)
        ids = state.store.git.run("rev-list", "--objects", "--no-object-names", commit)
        state.store.git.run("pack-objects", "-q", str(packs / "pack"), stdin=ids)
        state.store.git.run("prune-packed")
        state.close(run, days=3 if run == "old" else 0)
    age(state.store.git_dir / "objects")
    count = len(list(packs.glob("*.idx")))

    collect(state.home, NOBODY, Policy(older_s=86_400))

    assert len(list(packs.glob("*.idx"))) == count - 1
    assert len(list(packs.glob("*.pack"))) == count - 1
    assert state.store.resolve("refs/orch/kept/i1-c1-b1")
    assert state.store.git.ok("fsck", "--full", "--no-dangling")


def test_store_stays_while_a_campaign_stands_at_a_commit_of_it(state: Any, age: Age) -> None:
    state.begin("round-c-r1")
    incumbent = state.pin("round-c-r1", "composed")
    state.store.pin(campaign_ref("c"), incumbent)
    state.close("round-c-r1", days=30)
    age(state.store.path, days=30)

    gone = collect(state.home, NOBODY, Policy(older_s=86_400))

    assert "result" in kinds(gone)
    assert "store" not in kinds(gone)
    assert state.store.resolve(campaign_ref("c")) == incumbent
    assert state.store.git.ok("fsck", "--full", "--no-dangling")


def test_layers_stay_while_a_workspace_names_them_and_the_last_used_ones_until_they_are_old(
    state: Any, age: Age
) -> None:
    layers, ours = state.store.path / "bases", boot()
    ages = {
        f"named-{ours}": 9.0,
        f"old-{ours}": 3.0,
        f"last-{ours}": 1.0,
        f"last-setup-{ours}": 1.0,
        "last-otherboot": 1.0,
    }
    for name, days in ages.items():
        (layers / name).mkdir(parents=True)
        (layers / name / "used").touch()
        age(layers / name, days)
    for name in (f"made-{ours}.new", f"setup-{ours}"):
        (layers / name).mkdir()
    (layers / f"setup-{ours}" / "base").write_text(f"old-{ours}\n")
    age(layers / f"setup-{ours}")
    state.begin("live")
    (state.attempt("live") / "base").write_text(f"named-{ours}\n")

    first = collect(state.home, NOBODY)
    with held(layers / f"last-{ours}.lock"):
        by_age = collect(state.home, NOBODY, Policy(older_s=86_400 / 2))
    state.close("live")
    rest = collect(state.home, NOBODY)

    assert [item.path.name for item in first] == ["last-otherboot"]
    assert [(item.path.name, item.flaw) for item in by_age] == [
        (f"last-{ours}", "a workspace is being opened on it"),
        (f"last-setup-{ours}", ""),
    ]
    assert [item.path.name for item in rest] == [f"named-{ours}", f"old-{ours}", f"setup-{ours}"]
    left = [path.name for path in layers.iterdir() if path.is_dir()]
    assert sorted(left) == [f"last-{ours}", f"made-{ours}.new"]


@pytest.mark.parametrize("there", [True, False], ids=["repacked", "gone"])
def test_packs_that_the_user_has_no_more_go_and_what_is_needed_of_them_stays(
    there: bool, kit: Any, home: Home, tmp_path: Path, make_state: Any
) -> None:
    repo = kit.make_repo(tmp_path / "big", {"kept": os.urandom(300_000), "dropped": os.urandom(3_000_000)})
    kit.git(repo, "gc", "-q")
    state = make_state(repo)
    shared = collect(home, NOBODY)
    kit.git(repo, "rm", "-q", "dropped")
    kit.git(repo, "commit", "-q", "--amend", "-m", "smaller")
    kit.git(repo, "reflog", "expire", "--expire=now", "--all")
    kit.git(repo, "gc", "-q", "--prune=now")
    state.begin("run")
    state.close("run")
    before = du(home.root, repo)
    if not there:
        repo.rename(tmp_path / "elsewhere")
        repo = tmp_path / "elsewhere"

    found = collect(home, NOBODY)

    assert (shared, kinds(found), found[0].flaw) == ([], ["linked"], "")
    assert found[0].bytes > 2_600_000
    assert abs(before - du(home.root, repo) - found[0].bytes) < 20_000
    assert state.store.git.ok("fsck", "--full", "--no-dangling")
    assert state.store.git.ok("cat-file", "-e", "refs/orch/run/baseline:kept")
    assert collect(home, NOBODY) == []


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Somebody else's lock on a file."""
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
