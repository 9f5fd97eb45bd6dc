"""What a run that died without cleaning up leaves is found and collected; what a live run needs is not."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from orch import Client
from orch.activities import artifacts
from orch.activities.collecting.plan import Policy, collect, survey
from orch.activities.home import Home
from orch.cli.main import cli
from orch.worker.connection import connect
from orch.worker.reaping import dead_runs, reap
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]


@pytest.fixture(scope="module")
def engine_home(modules_engine_home: Home) -> Home:
    """What other tests left is not there."""
    return modules_engine_home


async def test_everything_of_a_terminated_run_is_collected(client: Client, project: Path) -> None:
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=("cmd:sleep 301",))
    temporal = await connect(client.home)
    await _agent(run, client)
    await temporal.get_workflow_handle(f"{run}/i1-c1-b1").terminate()
    await temporal.get_workflow_handle(run).terminate()

    dry = survey(client.home, await dead_runs(temporal, client.home), Policy()).foreseen()
    assert _processes(run)
    collected = await reap(temporal, client.home)

    assert {item.kind for item in dry} == {"run", "slot"}
    assert run in {item.path.name for item in collected}
    assert not _processes(run)
    assert not list(client.home.run(run).glob("attempts/*/tree"))
    assert not list(client.home.root.glob("stores/*/reserved/*"))
    assert await reap(temporal, client.home) == []


async def test_live_run_keeps_everything(client: Client, project: Path) -> None:
    agent = "cmd:sleep 3; echo 3 > level"
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=(agent,))
    await _agent(run, client)

    collected = await reap(await connect(client.home), client.home)
    view = await client.result(run)

    assert collected == []
    assert view.status is RunStatus.SUCCEEDED


async def test_old_results_go_with_their_refs_and_young_ones_stay(client: Client, project: Path) -> None:
    run = await client.start_goal(
        goal="raise", repo=project, verify=("grep -q 3 level",), agent=("cmd:echo 3 > level",), promote="none"
    )
    await client.result(run)
    async with asyncio.timeout(60):
        while not (client.home.run(run) / "closed").exists():
            await asyncio.sleep(0.05)

    kept = collect(client.home, frozenset(), Policy(older_s=3600))
    gone = collect(client.home, frozenset(), Policy(older_s=0))

    assert kept == []
    assert run in {item.path.name for item in gone}
    assert not client.home.run(run).exists()
    assert not list(client.home.root.glob(f"stores/*/store.git/refs/orch/{run}/*"))


def test_nothing_is_deleted_before_somebody_says_so(engine_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """G16, G43: without a terminal nobody is asked; what could not be deleted is told by name and by the status."""
    monkeypatch.setenv("ORCH_STATE", str(engine_home.root))
    old = [engine_home.run(f"old-{number}") for number in (1, 2)]
    for folder in old:
        artifacts.mark_closed(engine_home, folder.name)
        (folder / "log").write_bytes(b"x" * 40_000)
        os.utime(folder / artifacts.CLOSED, (1, 1))

    shown = _gc("--older-than", "300w")
    document = json.loads(_gc("--older-than", "300w", "--json").stdout)
    dry = _gc("--older-than", "300w", "--yes", "--dry-run")
    there = [folder.exists() for folder in old]
    with subprocess.Popen(["sleep", "60"], cwd=old[1]) as stands:
        partly = _gc("--older-than", "300w", "--yes", "--verbose")
        stands.kill()
    done = json.loads(_gc("--older-than", "300w", "--yes", "--json").stdout)

    assert (shown.exit_code, dry.exit_code) == (0, 0)
    assert "2  result     candidates and logs of old runs" in shown.stdout
    assert "would collect 2 things" in shown.stdout
    assert "give --yes" in shown.stderr
    assert (document["collected"], len(document["items"])) == (False, 2)
    assert document["bytes"] == sum(item["bytes"] for item in document["items"]) > 80_000
    assert there == [True, True]
    assert partly.exit_code == 1
    assert f"left there: {old[1]}: process {stands.pid} stands in it" in partly.stderr
    assert "collected 1 thing" in partly.stdout
    assert str(old[0]) in partly.stdout
    assert (done["collected"], [item["path"] for item in done["items"]]) == (True, [str(old[1])])
    assert not any(folder.exists() for folder in old)


def _gc(*options: str) -> Result:
    return CliRunner().invoke(cli, ("gc", *options), prog_name="orch")


async def _agent(run: str, client: Client) -> None:
    async with asyncio.timeout(60):
        while not _processes(run) or not (client.home.run(run) / "attempts/i1-c1-b1/agent/supervisor.json").exists():
            await asyncio.sleep(0.1)


def _processes(run: str) -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if f"/{run}/" in " ".join(p.info["cmdline"] or [])]
