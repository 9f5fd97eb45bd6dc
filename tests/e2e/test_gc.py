"""What a run that died without cleaning up leaves is found and collected; what a live run needs is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from orch import Client
from orch.activities.collecting.plan import Policy, collect, survey
from orch.worker.connection import connect
from orch.worker.reaping import dead_runs, reap
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]


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
    async with asyncio.timeout(10):
        while not (client.home.run(run) / "closed").exists():
            await asyncio.sleep(0.05)

    kept = collect(client.home, frozenset(), Policy(older_s=3600))
    gone = collect(client.home, frozenset(), Policy(older_s=0))

    assert kept == []
    assert run in {item.path.name for item in gone}
    assert not client.home.run(run).exists()
    assert not list(client.home.root.glob(f"stores/*/store.git/refs/orch/{run}/*"))


async def _agent(run: str, client: Client) -> None:
    async with asyncio.timeout(30):
        while not _processes(run) or not (client.home.run(run) / "attempts/i1-c1-b1/agent/supervisor.json").exists():
            await asyncio.sleep(0.1)


def _processes(run: str) -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if f"/{run}/" in " ".join(p.info["cmdline"] or [])]
