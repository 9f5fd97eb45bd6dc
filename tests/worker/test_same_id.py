"""Two hosts with one id: the copy is refused, a directory that was moved is not."""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
from temporalio.client import Client

from orch.activities.home import Home
from orch.worker import same_id
from orch.worker.connection import connect
from orch.worker.state import host_id
from orch.workflows.errors import RefusedError
from orch.workflows.host import host_queue


@pytest.fixture
def settled(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state")
    home.root.mkdir()
    same_id.settle(home, machine="m1")
    return home


def test_host_settles_again_where_it_lives(settled: Home) -> None:
    same_id.settle(settled, machine="m1")


def test_copy_on_the_same_machine_is_refused(settled: Home, tmp_path: Path) -> None:
    copy = Home(tmp_path / "copy")
    shutil.copytree(settled.root, copy.root)

    with pytest.raises(RefusedError, match=r"two hosts with one id: .*copy is a copy of .*state") as refused:
        same_id.settle(copy, machine="m1")
    assert "remove host-id and host.json" in refused.value.hint

    for name in ("host-id", "host.json"):
        (copy.root / name).unlink()
    same_id.settle(copy, machine="m1")
    assert host_id(copy) != host_id(settled)


def test_copy_on_another_machine_is_refused_at_the_same_path_too(settled: Home) -> None:
    with pytest.raises(RefusedError, match="belongs to another machine"):
        same_id.settle(settled, machine="m2")


def test_machine_without_an_id_is_not_held_for_another(settled: Home) -> None:
    same_id.settle(settled, machine="")


def test_directory_that_was_moved_keeps_its_id(settled: Home, tmp_path: Path) -> None:
    kept = host_id(settled)
    moved = Home(settled.root.rename(tmp_path / "moved"))

    same_id.settle(moved, machine="m1")

    assert host_id(moved) == kept


async def _poll(client: Client, queue: str) -> None:
    """Ask for an activity for a few seconds, as a worker does for a minute at a time; return once that is known."""
    request = PollActivityTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), identity=client.identity
    )
    before = await same_id._polled(client, queue)
    asking = asyncio.create_task(
        client.workflow_service.poll_activity_task_queue(request, timeout=timedelta(seconds=3))
    )
    async with asyncio.timeout(60):
        while (await same_id._polled(client, queue)).get(client.identity) == before.get(client.identity):
            await asyncio.sleep(0.05)
    asking.cancel()


@pytest.mark.engine
async def test_worker_that_came_later_gives_way_to_the_one_that_serves_its_id(
    shared_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_id, "LOOK_S", 0.3)
    home = Home(tmp_path)
    queue = host_queue(host_id(home))
    one, two = await connect(shared_home, identity="one"), await connect(shared_home, identity="two")
    await _poll(one, queue)
    await _poll(two, queue)
    watching = asyncio.create_task(same_id.watch(two, home, "two"))
    await asyncio.sleep(0.8)
    assert not watching.done()  # the first one asked before, as a worker does that was stopped for this one

    await _poll(one, queue)

    with pytest.raises(RefusedError, match="another worker, one, serves the host id"):
        await asyncio.wait_for(watching, timeout=60)
