"""What no live run needs goes, to what `du` says; what one needs, what somebody uses and what is not ours stays."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orch.activities import artifacts
from orch.activities.collecting import trash
from orch.activities.collecting.found import Collected
from orch.activities.collecting.plan import Policy, carry_out, collect, survey, suspects
from orch.activities.lanes.desk import DESK, TAKEN, make_desk
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.workflows.errors import RefusedError

NOBODY = frozenset[str]()
Age = Callable[..., None]


def kinds(found: list[Collected]) -> list[str]:
    return [item.kind for item in found]


def du(*paths: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", "-c", *map(str, paths)], capture_output=True, check=True, text=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_collection_frees_what_it_said_to_what_du_reports(state: Any, age: Age) -> None:
    for number in range(20):
        run = f"old-{number}"
        folder = state.begin(run)
        (folder / "log").write_bytes(os.urandom(50_000))
        state.pin(run, f"{number}\n" * 3000)
        state.close(run, days=2)
    state.begin("live")
    kept = state.pin("live", "kept")
    artifacts.mark_closed(state.home, "live")
    age(state.store.git_dir / "objects")
    (state.home.root / "gc.lock").touch()
    trash.folder(state.home).mkdir()
    before = du(state.home.root, state.repo)

    plan = survey(state.home, NOBODY, Policy(older_s=86_400))
    said = plan.foreseen()
    found = carry_out(plan)

    after = du(state.home.root, state.repo)
    assert sorted(set(kinds(found))) == ["object", "result"]
    assert found == said
    assert before - after == sum(item.bytes for item in found)
    assert before - after > 20 * 50_000
    assert state.store.resolve(kept)
    assert state.store.git.ok("fsck", "--full", "--no-dangling")


def test_desks_of_lanes_go_with_their_runs(state: Any, tmp_path: Path) -> None:
    for run in ("dead", "closed", "live"):
        state.begin(run)
        folder = state.attempt(run)
        (make_desk(folder) / "outbox" / "r1-l1-00000000").mkdir()
        (folder / TAKEN).mkdir()
        (folder / TAKEN / "r1-l1-00000000.json").write_text("{}" * 5000)
        (folder / DESK / "status").rmdir()
        (folder / DESK / "status").symlink_to(tmp_path)
    state.close("closed")

    found = collect(state.home, frozenset({"dead"}))

    assert sorted(kinds(found)) == ["run", "workspace"]
    assert not any(item.flaw for item in found)
    left = {path.parts[-4]: path.name for path in state.home.root.glob(f"runs/*/attempts/*/{DESK}")}
    assert left == {"live": DESK}
    assert not list(state.home.root.glob(f"runs/[cd]*/attempts/*/{TAKEN}"))
    assert tmp_path.is_dir()
    assert all(item.bytes >= 10_000 for item in found)
    assert collect(state.home, NOBODY) == []


def test_objects_of_a_store_stay_while_a_run_may_use_it_or_they_are_young(state: Any, age: Age) -> None:
    lost = state.store.git.text("hash-object", "-w", "--stdin", stdin=b"nobody's")
    assert (state.store.apart / lost[:2]).exists()
    young = collect(state.home, NOBODY)
    age(state.store.git_dir / "objects")
    state.begin("live")
    used = collect(state.home, NOBODY)
    state.close("live")
    free = collect(state.home, NOBODY)

    assert (young, used, kinds(free)) == ([], [], ["object"])
    assert not state.store.git.ok("cat-file", "-e", lost)
    assert not (state.store.apart / lost[:2]).exists()


def test_store_goes_only_without_runs_unused_for_long_and_never_the_users_objects(
    state: Any, age: Age, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    before = fingerprint(state.repo)
    state.begin("run")
    state.close("run")
    age(state.store.path)
    pinned = collect(state.home, NOBODY, Policy(older_s=7 * 86_400))
    age(state.store.path, days=8)
    state.close("run", days=8)

    with held(state.store.path / "lock"):
        busy = [item for item in collect(state.home, NOBODY, Policy(older_s=7 * 86_400)) if item.kind == "store"]
    gone = collect(state.home, NOBODY, Policy(older_s=7 * 86_400))

    assert pinned == []
    assert [(item.flaw, item.bytes) for item in busy] == [("somebody else holds the store's lock", 0)]
    assert kinds(gone) == ["store"]
    assert not state.store.path.exists()
    assert fingerprint(state.repo) == before


def test_who_waits_for_a_store_that_goes_gets_a_new_one(state: Any) -> None:
    state.begin("run")
    with ThreadPoolExecutor(1) as thread:
        with state.store.lock():
            waiting = thread.submit(Store.of, state.home, inspect(state.repo))
            time.sleep(0.1)
            state.store.path.rename(state.home.root / "gone")
        store = waiting.result(20)

    assert store == state.store
    assert store.git.ok("fsck", "--full", "--no-dangling")
    assert not (state.home.root / "gone" / "store.git.new").exists()


def test_pins_of_a_dead_run_without_a_folder_go_and_a_live_ones_stay(state: Any) -> None:
    state.pin("dead", "d")
    state.pin("elsewhere", "e")

    asked = suspects(state.home, pins=True)
    found = collect(state.home, frozenset({"dead"}))

    assert asked == {"dead", "elsewhere"}
    assert kinds(found) == ["ref"]
    assert state.store.resolve("refs/orch/dead/i1-c1-b1") is None
    assert state.store.resolve("refs/orch/elsewhere/i1-c1-b1")


def test_run_that_is_just_being_started_is_no_suspect(state: Any, age: Age) -> None:
    folder = state.home.run("beginning")
    folder.mkdir(parents=True)

    assert suspects(state.home) == NOBODY
    age(folder)
    assert suspects(state.home) == {"beginning"}


def test_want_of_room_takes_the_oldest_results_first(state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (state.begin(f"run-{number}") / "log").write_bytes(b"x" * 1_000_000)
        state.close(f"run-{number}", days=number)
    free = 10 << 30
    monkeypatch.setattr("orch.activities.collecting.plan.free_bytes", lambda _path: free)

    plan = survey(state.home, NOBODY, Policy(free=free + 1_500_000))

    assert [one.path.name for one in plan.found if one.kind == "result"] == ["run-3", "run-2"]


def test_result_is_kept_while_a_process_stands_in_it_and_says_which(state: Any) -> None:
    """G44: a shell is not left in a folder that is gone."""
    folder = state.begin("run")
    state.close("run", days=2)
    process = subprocess.Popen(["sleep", "60"], cwd=folder)
    try:
        (found,) = collect(state.home, NOBODY, Policy(older_s=86_400))
    finally:
        process.kill()
        process.wait()

    assert (found.flaw, found.bytes) == (f"process {process.pid} stands in it", 0)
    assert folder.exists()
    assert kinds(collect(state.home, NOBODY, Policy(older_s=86_400))) == ["result"]


def test_link_in_the_place_of_a_run_or_of_its_workspace_is_never_followed(state: Any, tmp_path: Path) -> None:
    """G18, G19: only the link goes."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "file").write_text("mine")
    (outside / artifacts.CLOSED).touch()
    state.begin("run")
    attempt = state.attempt("run")
    (attempt / "tree").symlink_to(outside)
    (attempt / "node_modules").symlink_to(outside)
    (state.home.root / "runs" / "linked").symlink_to(outside)
    state.close("run", days=2)

    found = collect(state.home, NOBODY, Policy(older_s=86_400))

    assert kinds(found) == ["result"]
    assert (outside / "deep" / "file").read_text() == "mine"
    assert (state.home.root / "runs" / "linked").is_symlink()


def test_workspace_reached_through_a_link_is_kept_and_told(state: Any, tmp_path: Path) -> None:
    """G18: `attempts` leads elsewhere."""
    state.begin("run")
    real = tmp_path / "elsewhere"
    (real / "i1-c1-b1" / "tree").mkdir(parents=True)
    (state.home.run("run") / "attempts").symlink_to(real)
    state.close("run")

    (found,) = collect(state.home, NOBODY)

    assert (found.kind, found.flaw) == ("workspace", "it is reached through a link")
    assert (real / "i1-c1-b1" / "tree").exists()


def test_removal_that_fails_is_told_and_nothing_is_counted(state: Any) -> None:
    """G43: the trash cannot be made."""
    folder = state.begin("run")
    state.close("run", days=2)
    trash.folder(state.home).write_text("no folder")

    (found,) = [item for item in collect(state.home, NOBODY, Policy(older_s=86_400)) if item.kind == "result"]

    assert found.flaw
    assert found.bytes == 0
    assert folder.exists()
    assert state.store.resolve("refs/orch/run/baseline")


def test_what_cannot_be_deleted_is_told_with_what_is_in_the_way_and_not_counted(state: Any) -> None:
    """G43: something is mounted in what was renamed away."""
    (state.home.root / "trash/one/mounted").mkdir(parents=True)
    (state.home.root / "trash/one/file").write_bytes(b"x" * 50_000)
    script = (
        "import sys\nfrom pathlib import Path\nfrom orch.activities.home import Home\n"
        "from orch.activities.collecting.plan import collect\n"
        "for item in collect(Home(Path(sys.argv[1])), frozenset()):\n print(item.kind, item.bytes, item.flaw)"
    )
    mounting = 'mount -t tmpfs none "$0/trash/one/mounted" && touch "$0/trash/one/mounted/x" && exec "$@"'
    argv = ["unshare", "-r", "-m", "sh", "-c", mounting, state.home.root, sys.executable, "-c", script, state.home.root]

    done = subprocess.run(argv, capture_output=True, check=True, text=True)

    kind, count, flaw = done.stdout.strip().split(" ", 2)
    assert (kind, flaw) == ("trash", f"Device or resource busy: {state.home.root}/trash/one/mounted")
    assert int(count) >= 50_000


def test_read_only_folders_and_interrupted_removals_go_too(state: Any) -> None:
    folder = state.begin("run")
    (folder / "locked").mkdir()
    (folder / "locked" / "file").write_text("x")
    (folder / "locked").chmod(0o500)
    state.close("run", days=2)
    trash.discard(state.home, folder)

    (found,) = collect(state.home, NOBODY)

    assert (found.kind, found.flaw) == ("trash", "")
    assert list(trash.lying(state.home)) == []


def test_result_with_an_unfinished_promotion_stays(state: Any) -> None:
    folder = state.begin("run")
    state.close("run", days=2)
    (state.store.path / "journal" / "run-abc").mkdir(parents=True)

    (found,) = collect(state.home, NOBODY, Policy(older_s=86_400))

    assert "promotion is not finished" in found.flaw
    assert folder.exists()


def test_two_collections_do_not_work_at_once(state: Any) -> None:
    with held(state.home.root / "gc.lock"), pytest.raises(RefusedError, match="another collection"):
        collect(state.home, NOBODY)


def test_run_that_begins_between_look_and_removal_keeps_its_objects(state: Any, age: Age) -> None:
    lost = state.store.git.text("hash-object", "-w", "--stdin", stdin=b"wanted again")
    age(state.store.git_dir / "objects")
    plan = survey(state.home, NOBODY, Policy())
    state.begin("live")

    (found,) = carry_out(plan)

    assert found.flaw == "a run began that uses it"
    assert state.store.git.ok("cat-file", "-e", lost)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Somebody else's lock on a file."""
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def test_what_waits_in_the_trash_is_private(state: Any) -> None:
    folder = state.home.root / "runs" / "old"
    (folder / "attempts").mkdir(parents=True)
    trash.discard(state.home, folder)

    assert stat.S_IMODE(trash.folder(state.home).stat().st_mode) == 0o700
