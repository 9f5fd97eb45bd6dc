"""What others made is out of sight: of other lanes and candidates a workspace has not even an object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import processes
from orch.activities.home import Home
from orch.activities.processes import Command
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline, take_candidate
from orch.activities.store import Store
from orch.activities.workspaces.registry import close_workspace, open_workspace, provider_of

LOOK = """
git cat-file --batch-all-objects --batch-check >objects
git cat-file -p {blob} >stolen
git log --format=%H >log 2>said; git fsck >>said 2>&1; git show HEAD:bench.py >bench
git commit -q --allow-empty -m mine && git show HEAD:bench.py >own
"""


def _recorded(scene: Any, number: int) -> Any:
    """The snapshot of a lane's workspace."""
    folder = scene.folder(number)
    return take_candidate(
        Store(scene.home, scene.store),
        folder / "tree",
        attempt=scene.key(number),
        commit=scene.plan.incumbent,
        index=folder / "index",
        contract=scene.request(number).contract,
        carried=(),
    )


def _said(tree: Path, argv: tuple[str, ...]) -> str:
    done = processes.run(Command(argv, tree, processes.scrubbed_environment({})), timeout_s=30)
    assert done.exit.ok, done.stderr
    return done.stdout.decode()


def test_an_agent_can_neither_list_nor_read_what_another_lane_made(
    scene: Callable[..., Any], lane_of: Callable[..., Any]
) -> None:
    one = scene(lanes=(lane_of(), lane_of("other", globs=("docs/**",))))
    one.open(2)
    one.agent("mkdir -p docs && echo the idea of another >docs/new", 2)
    made = _recorded(one, 2)
    store = Store(one.home, one.store)
    blob = store.git.text("rev-parse", f"{made.commit}:docs/new")
    one.open(1)

    one.agent(LOOK.format(blob=blob), 1)

    written = one.written(1)
    listed = (written / "objects").read_text()
    assert one.plan.incumbent in listed
    assert not [oid for oid in (blob, made.commit, made.tree) if oid in listed]
    assert (written / "stolen").read_text() == ""
    assert (written / "log").read_text().split()[0] == one.plan.incumbent
    assert (written / "bench").read_text() == (written / "own").read_text() == "print(1)\n"
    said = (written / "said").read_text()
    assert not [word for word in ("error", "fatal", "missing", "does not exist") if word in said], said


@pytest.mark.parametrize("copy", [False, True])
def test_a_workspace_at_what_another_run_made_has_its_history_and_nothing_else_of_that(
    copy: bool,
    scene: Callable[..., Any],
    lane_of: Callable[..., Any],
) -> None:
    one = scene(lanes=(lane_of(), lane_of("other", globs=("docs/**",))))
    for number in (1, 2):
        one.open(number)
        one.agent(f"mkdir -p docs && echo {number} >docs/new", number)
    first, second = (_recorded(one, number) for number in (1, 2))
    store, folder = Store(one.home, one.store), one.folder(7)
    tree = open_workspace(store, folder, first.commit, measuring=copy)
    store.apart.rename(store.apart.with_name("hidden"))
    store.apart.mkdir()

    def git(*words: str) -> str:
        return _said(tree, provider_of(folder).entering(folder, ("git", *words)))

    assert git("show", "HEAD:docs/new") == "1\n"
    assert git("log", "--format=%H").split() == [first.commit, one.plan.incumbent]
    assert "missing" not in git("fsck", "--full")
    assert second.commit not in git("cat-file", "--batch-all-objects", "--batch-check")
    close_workspace(store, folder)


def test_a_file_of_the_users_that_a_candidate_made_first_is_in_every_workspace(
    scene: Callable[..., Any], project: Path, home: Home
) -> None:
    one = scene()
    one.open()
    one.agent("echo found >src/new")
    _recorded(one, 1)
    (project / "src/new").write_text("found\n")
    store = Store(home, one.store)

    later = take_baseline(store, inspect(project), "later")
    tree = open_workspace(store, one.folder(7), later.commit)
    store.apart.rename(store.apart.with_name("hidden"))
    store.apart.mkdir()

    argv = provider_of(one.folder(7)).entering(one.folder(7), ("git", "show", "HEAD:src/new"))
    assert _said(tree, argv) == "found\n"
