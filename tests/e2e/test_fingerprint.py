"""The user's repository is untouched by whatever runs do, until a promotion moves the winner's paths and no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities import artifacts
from orch.activities.collecting.plan import Policy, collect, survey, suspects
from orch.activities.git import Git
from orch.activities.sandbox.registry import probe
from orch.worker.connection import connect
from orch.worker.reaping import dead_runs
from orch.workflows.model.event import BaselineTaken, Event
from orch.workflows.model.view import RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Climb = Callable[[int], str]
Fingerprint = Callable[[Path], dict[str, str]]
Shape = Callable[[ModuleType, Path], Path]

FILES: dict[str, str | bytes] = {
    "level": "0\n",
    "gone": "x\n",
    "run.sh": "echo\n",
    ".gitignore": "*.log\n",
    "debug.log": "ignored\n",
}
AGENT = (
    'cmd:for f in *; do [ -f "$f" ] && echo more >> "./$f"; done; echo 3 > level; '
    "rm -f gone; chmod +x run.sh; ln -s level link; mkdir 'new d'; echo x > 'new d/caf\u00e9'"
)
"""Edits every file at the top; deletes, adds, links, changes a mode."""

IDENTITY = "export GIT_AUTHOR_NAME=A GIT_COMMITTER_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_EMAIL=a@b"

ATTACKS = (
    "git config core.bare true",
    "git config core.worktree /",
    "git config core.hooksPath /tmp/hooks",
    "git config filter.evil.smudge 'touch /tmp/evil'",
    "echo evil > level; git stash -u",
    "for b in $(git for-each-ref --format='%(refname)'); do git update-ref -d $b; done",
    "git branch -D main",
    "git worktree prune --expire=now",
    "git reflog expire --all --expire=now; git gc --prune=now",
    "git prune --expire=now",
    "rm -rf $(git rev-parse --git-common-dir)/objects",
    "cd $(git rev-parse --git-common-dir) && mkdir hooks; echo 'exit 1' > hooks/post-checkout; chmod +x hooks/*; cd - ",
    "rm -rf .git; git init -q",
    "rm -rf .git; git add -A; git commit -qm evil",
)


def unborn(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", {})
    kit.write(repo, FILES)
    return repo


def detached(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", FILES)
    kit.git(repo, "checkout", "-q", "--detach")
    return repo


def linked(kit: ModuleType, folder: Path) -> Path:
    kit.git(kit.make_repo(folder / "main", FILES), "worktree", "add", "-q", "-b", "side", "../p")
    (folder / "p" / "run.sh").write_text("dirty\n")
    return folder / "p"


def shallow(kit: ModuleType, folder: Path) -> Path:
    origin = kit.make_repo(folder / "origin", FILES)
    kit.git(origin, "commit", "-q", "--allow-empty", "-m", "second")
    kit.git(folder, "clone", "-q", "--depth", "1", origin.as_uri(), "p")
    return folder / "p"


def sparse(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", {**FILES, "a/in": "x\n", "b/out": "x\n"})
    kit.git(repo, "sparse-checkout", "set", "a")
    assert not (repo / "b").exists()
    return repo


def odd_names(kit: ModuleType, folder: Path) -> Path:
    names = (
        "caf\u00e9.md",
        "\u65e5\u672c.txt",
        "a b -> c",
        "tab\tx",
        "new\nline",
        '"q".txt',
        "-n",
        ":(glob)x",
        os.fsdecode(b"\xff"),
    )
    return Path(
        kit.make_repo(
            folder / "it's 100% a\u00e9 repo", {**FILES, **dict.fromkeys(names, "x\n"), "a b/c b/d.txt": "x\n"}
        )
    )


def submodule(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", FILES)
    kit.git(repo, "submodule", "--quiet", "add", kit.make_repo(folder / "library").as_uri(), "sub")
    kit.commit_all(repo)
    (repo / "sub" / "mine.txt").write_text("not committed\n")
    return repo


def nested(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", FILES)
    kit.make_repo(repo / "inner")
    return repo


def dirty_index(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", {**FILES, "both": "1\n", "staged": "1\n", "removed": "1\n"})
    kit.write(repo, {"both": "2\n", "staged": "2\n", "added": "2\n", "meant": "2\n"})
    kit.git(repo, "add", "both", "staged", "added")
    kit.git(repo, "add", "-N", "meant")
    kit.git(repo, "rm", "-q", "--cached", "removed")
    (repo / "both").write_text("3\n")
    return repo


def crlf(kit: ModuleType, folder: Path) -> Path:
    repo: Path = kit.make_repo(folder / "p", {})
    kit.git(repo, "config", "core.autocrlf", "true")
    kit.write(repo, {**FILES, "dos.txt": b"a\r\nb\r\n", "unix.txt": b"a\nb\n", "same/dos.txt": b"a\r\nb\r\n"})
    kit.commit_all(repo)
    return repo


SHAPES = (unborn, detached, linked, shallow, sparse, odd_names, submodule, nested, dirty_index, crlf)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
async def test_only_the_winners_paths_move_and_only_when_promoted(
    shape: Shape, client: Client, fingerprint: Fingerprint, kit: ModuleType, tmp_path: Path
) -> None:
    """I1, I2, G07, G14, G22, G32, G40, G51, G52, G53: a shape is run on, then promoted to."""
    repo = shape(kit, tmp_path)
    before, head = fingerprint(repo), kit.git(repo, "symbolic-ref", "HEAD") if shape is not detached else ""

    view = await _goal(client, repo, AGENT)
    ran = fingerprint(repo)
    moved = await client.promote(view.id)

    assert (view.status, moved.refused) == (RunStatus.SUCCEEDED, None)
    assert ran == before
    (winner,) = view.iterations[0].candidates
    store, baseline = await _store(client, view.id)
    paths = store.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", baseline, str(winner.commit))
    assert _changed(before, fingerprint(repo)) == {os.fsdecode(path) for path in paths} >= {"level", "link", "gone"}
    assert os.access(repo / "run.sh", os.X_OK)
    assert not head or kit.git(repo, "symbolic-ref", "HEAD") == head
    kit.git(repo, "add", "--sparse", "-A", ".", ":(exclude)inner")
    assert kit.git(repo, "write-tree") == moved.tree == winner.tree


async def test_nothing_changes_however_runs_end(
    client: Client, project: Path, climb: Climb, fingerprint: Fingerprint
) -> None:
    """I1, I3: a run that fails, one whose agents crash, one that is cancelled, all at once on one tree."""
    before = fingerprint(project)
    failing, crashing = _goal(client, project, climb(1)), _goal(client, project, "cmd:echo 1 > level; kill -9 $$")
    cancelled = _cancelled(client, project, "cmd:echo 1 > level; sleep 300 & sleep 300")

    ends = await asyncio.gather(failing, crashing, cancelled)

    assert [view.status for view in ends] == [RunStatus.FAILED, RunStatus.FAILED, RunStatus.CANCELLED]
    assert fingerprint(project) == before


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandboxed", "free"])
async def test_agents_that_attack_git_reach_neither_the_user_nor_the_others(
    client: Client, project: Path, climb: Climb, fingerprint: Fingerprint, sandbox: bool
) -> None:
    """I1, G06, G12, G17, G37: an honest candidate among them wins, and the next run finds a sound store."""
    if sandbox and probe():
        pytest.skip("no sandbox on this host")
    before = fingerprint(project)
    attackers = [f"cmd:{IDENTITY}; {attack}; echo 2 > level" for attack in ATTACKS]

    view = await _goal(client, project, *attackers, climb(3), sandbox=sandbox)
    after = await _goal(client, project, climb(3), sandbox=sandbox)

    assert fingerprint(project) == before
    assert (view.status, view.iterations[0].winner) == (RunStatus.SUCCEEDED, len(ATTACKS) + 1)
    assert [c.rungs_passed for c in view.iterations[0].candidates] == [0] * len(ATTACKS) + [1]
    assert {c.paths for c in view.iterations[0].candidates} == {("level",)}
    assert after.status is RunStatus.SUCCEEDED
    store, _ = await _store(client, view.id)
    assert store.attempt("fsck", "--full", "--no-dangling", "--connectivity-only")[0] == 0


async def test_collecting_touches_no_live_run_no_result_and_nothing_of_the_users(
    client: Client, project: Path, climb: Climb, fingerprint: Fingerprint
) -> None:
    """I1, I5, G16, G17, G18: results stay until they are old; a link in a workspace's place is only unlinked."""
    before = fingerprint(project)
    done = await _goal(client, project, climb(2), max_iterations=1)
    gate = client.home.root / "gate"
    waits = f"cmd:until [ -e {gate} ]; do sleep 0.1; done; echo 3 > level"
    live = await client.start_goal(**_options(project, waits, sandbox=False))
    folder = client.home.run(done.id)
    await _appears(folder / artifacts.CLOSED)
    await _appears(client.home.run(live) / "attempts/i1-c1-b1/agent")
    (folder / artifacts.CLOSED).unlink()
    (folder / "attempts/i1-c1-b1/tree").symlink_to(project)
    store, _ = await _store(client, done.id)

    assert live in suspects(client.home)
    dead = await dead_runs(await connect(client.home), client.home)
    foreseen = survey(client.home, dead, Policy()).foreseen()
    held = collect(client.home, dead)
    kept = store.ok("cat-file", "-e", str(done.iterations[0].candidates[0].commit))
    old = collect(client.home, dead, Policy(older_s=0))
    gate.touch()
    view = await client.result(live)

    assert done.id in dead
    assert live not in dead
    assert folder in {item.path for item in foreseen} & {item.path for item in held}
    assert kept
    assert folder in {item.path for item in old}
    assert not folder.exists()
    assert not store.run("for-each-ref", f"refs/orch/{done.id}/")
    assert view.status is RunStatus.SUCCEEDED
    assert fingerprint(project) == before


async def _goal(client: Client, repo: Path, *agents: str, **options: Any) -> RunView:
    return await client.result(await client.start_goal(**_options(repo, *agents, **options)))


def _options(repo: Path, *agents: str, **options: Any) -> dict[str, Any]:
    given = {"goal": "raise the level", "repo": repo, "verify": ("grep -q 3 level",), "agent": agents}
    return {**given, "candidates": len(agents), "promote": "none", "max_iterations": 2, **options}


async def _cancelled(client: Client, repo: Path, agent: str) -> RunView:
    run = await client.start_goal(**_options(repo, agent))
    await _appears(client.home.run(run) / "attempts/i1-c1-b1/agent")
    await client.cancel(run)
    return await client.result(run)


async def _appears(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.05)


async def _store(client: Client, run: str) -> tuple[Git, str]:
    """The run's store and its baseline's commit."""
    events: list[Event] = [event async for event in client.events(run)]
    (baseline,) = [event for event in events if isinstance(event, BaselineTaken)]
    return Git(client.home.store(baseline.store) / "store.git"), baseline.commit


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
