"""A run whose attempts may go to any host, on the only host there is; needs that no host has; what a lost one held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.exchange.arriving import MARK
from orch.worker.connection import connect
from orch.worker.reaping import reap_replaced
from orch.worker.state import host_id
from orch.workflows.errors import RefusedError
from orch.workflows.model.view import RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


async def test_two_iterations_by_way_of_an_artifact_store_end_as_without(
    client: Client, run_goal: RunGoal, shared: Path
) -> None:
    step = "cmd:echo $(( $(cat level) + 2 )) > level"

    view = await run_goal(step, "cmd:true", exchange=shared.as_uri())

    assert view.status is RunStatus.SUCCEEDED
    assert [iteration.winner for iteration in view.iterations] == [1, 1]
    assert {c.host for i in view.iterations for c in i.candidates} == {host_id(client.home)}
    heads = {view.baseline, *(i.candidates[0].commit for i in view.iterations)}
    assert {path.stem for path in shared.glob("*/commits/*.json")} == heads
    assert not list(client.home.slots.glob("[0-9]*"))


async def test_needs_that_no_host_has_are_refused_before_anything_is_started(
    client: Client, project: Path, shared: Path
) -> None:
    options: dict[str, Any] = {
        "goal": "raise",
        "repo": project,
        "verify": ("false",),
        "agent": ("cmd:true",),
        "id": "goal-needy",
    }

    with pytest.raises(RefusedError, match="no host of the engine has gpu"):
        await client.start_goal(**options, exchange=shared.as_uri(), needs=("gpu",))

    assert "goal-needy" not in {row.id for row in await client.list()}


async def test_attempt_that_was_begun_anew_elsewhere_is_let_go_of_although_its_run_goes_on(
    client: Client, project: Path, shared: Path
) -> None:
    options: dict[str, Any] = {
        "goal": "raise",
        "repo": project,
        "verify": ("grep -q 3 level",),
        "exchange": shared.as_uri(),
    }
    run = await client.start_goal(agent=("cmd:sleep 301",), **options)
    temporal = await connect(client.home)
    folder = client.home.run(run)
    async with asyncio.timeout(60):
        while not (folder / "attempts" / "i1-c1-b1" / "prompt.md").exists():
            await asyncio.sleep(0.05)
    assert (folder / MARK).exists()
    replaced = folder / "attempts" / "i1-c1-b7"  # of which the engine knows nothing (any more)
    replaced.mkdir()
    assert not (folder / "attempts" / "i1-c1-b1" / "closed").exists()

    reaped = await reap_replaced(temporal, client.home)

    assert [path.name for path in reaped] == ["i1-c1-b7"]
    assert (await client.view(run)).status is RunStatus.RUNNING
    await client.cancel(run)
    assert (await client.result(run)).status is RunStatus.CANCELLED


async def test_artifact_store_that_goes_away_costs_no_finished_work(
    client: Client, run_goal: RunGoal, shared: Path
) -> None:
    """What is needed of it is asked for again and again; the run goes on when it is back."""
    gone = shared.with_name("gone")

    async def bring_back() -> None:
        while not gone.exists():
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)
        gone.rename(shared)

    async with asyncio.timeout(60):
        agent = f"cmd:mv {shared} {gone}; echo 3 > level"
        view, _ = await asyncio.gather(run_goal(agent, exchange=shared.as_uri(), sandbox=False), bring_back())

    assert view.status is RunStatus.SUCCEEDED
    assert len(list(shared.glob("*/commits/*.json"))) == 2
