"""Runs of a repository that is given as a URL: nothing of it lies on this host but what the store holds."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from orch import Client
from orch.cli.main import cli
from orch.workflows.errors import RefusedError
from orch.workflows.model.view import RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]


@pytest.fixture
def bare(make_repo: Callable[..., Path], tmp_path: Path, kit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository at level 0; beside it `clone`, the current folder."""
    make_repo(tmp_path / "clone", {"level": "0\n"})
    kit.git(tmp_path, "clone", "-q", "--bare", "clone", "project.git")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "project.git"


def orch(client: Client, *args: str) -> Result:
    return CliRunner().invoke(cli, args, env={"ORCH_STATE": str(client.home.root)}, prog_name="orch")


async def test_result_of_a_url_is_applied_or_fetched_in_a_clone(
    client: Client, run_goal: RunGoal, bare: Path, kit: ModuleType, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    before = fingerprint(bare)

    view = await run_goal("cmd:git log -1 && echo 3 > level", "cmd:true", repo=bare.as_uri())

    assert (view.status, view.repo, view.promoted) == (RunStatus.SUCCEEDED, bare.as_uri(), None)
    patch = await asyncio.to_thread(orch, client, "diff", view.id)
    kit.git(Path(), "apply", "--check", "-", stdin=patch.stdout_bytes)
    with pytest.raises(RefusedError, match="there is no working tree here") as refused:
        await client.promote(view.id)
    fetch = refused.value.hint.removeprefix("in a clone of it: git ").split("   ")[0]
    kit.git(Path(), *fetch.split())
    assert kit.git(Path(), "show", "FETCH_HEAD:level") == "3"
    assert kit.git(Path(), "rev-parse", "FETCH_HEAD^") == kit.git(bare, "rev-parse", "HEAD")
    with pytest.raises(RefusedError, match="there is no working tree here"):
        await client.restore(view.id)
    assert fingerprint(bare) == before


def test_schedule_of_a_url_starts_from_what_was_pushed_since(client: Client, bare: Path, kit: ModuleType) -> None:
    name = "nightly-url"
    options = ("--repo", bare.as_uri(), "--ref", "main", "--verify", "grep -q 3 level", "--cron", "0 2 * * *")
    agent = ("--agent", "cmd:test -e new && echo 3 > level", "--max-iterations", "1")
    made = orch(client, "schedule", "create", "goal", "raise it", *options, *agent, "--id", name, "--json")
    assert (made.exit_code, json.loads(made.stdout)) == (0, {"id": name}), made.output
    kit.write(Path(), {"new": ""})
    pushed = kit.commit_all(Path())
    kit.git(Path(), "push", "-q", str(bare), "HEAD:main")

    assert orch(client, "schedule", "run", name).exit_code == 0
    view = asyncio.run(_first(client, f"{name}-20"))

    assert orch(client, "schedule", "delete", name).exit_code == 0
    assert (view.status, view.baseline) == (RunStatus.SUCCEEDED, pushed)


async def _first(client: Client, prefix: str) -> RunView:
    give_up = time.monotonic() + 60
    found: Sequence[str] = ()
    while not found:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.1)
        found = [row.id for row in await client.list() if row.id.startswith(prefix)]
    return await client.result(found[0])
