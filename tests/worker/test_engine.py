from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest

from orch.activities import processes
from orch.activities.home import Home
from orch.worker import connection, engine, locks, server
from orch.worker.records import read_server, read_worker
from orch.workflows.errors import RefusedError, UnreachableError

pytestmark = pytest.mark.engine

STARTER = """
import asyncio, json, os, sys
from pathlib import Path
from orch.activities.home import Home
from orch.worker import engine
status = asyncio.run(engine.ensure_up(Home(Path(sys.argv[1]))))
print(json.dumps(dict(status.pids)), flush=True)
os._exit(0)
"""


async def start_elsewhere(home: Home) -> asyncio.subprocess.Process:
    """Another process that brings the engine up and prints its pids."""
    command = (sys.executable, "-c", STARTER, str(home.root))
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)


def kill(pid: int) -> None:
    ticks = processes.start_ticks(pid)
    assert ticks is not None
    os.kill(pid, signal.SIGKILL)
    while processes.alive(pid, ticks):
        time.sleep(0.01)


def stop(pid: int) -> None:
    """Stop a process and wait for its last thread: one that waits for the disk stops later, and the others serve on."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    while any(stat.read_text().rpartition(") ")[2][0] != "T" for stat in threads.glob("*/stat")):
        time.sleep(0.01)


def gone(pid: int) -> bool:
    return processes.start_ticks(pid) is None


async def test_down_leaves_no_process_and_keeps_the_ports(home: Home) -> None:
    up = await engine.ensure_up(home)
    assert up.up
    await engine.down(home)
    assert all(gone(pid) for pid in up.pids.values())
    stopped = await engine.status(home)
    assert (stopped.server, stopped.worker, stopped.pids) == ("stopped", "stopped", {})
    assert (stopped.address, stopped.ui_url) == (up.address, up.ui_url)


async def test_down_without_an_engine_is_no_error(home: Home) -> None:
    await engine.down(home)
    assert not home.root.exists()
    assert (await engine.status(home)).server == "stopped"


async def test_four_starters_at_once_give_one_server_and_one_worker(home: Home) -> None:
    starters = [await start_elsewhere(home) for _ in range(4)]
    answers = [await starter.communicate() for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * 4
    pids = [json.loads(out) for out, _ in answers]
    assert pids == [pids[0]] * 4
    assert set(pids[0]) == {"server", "worker"}


async def test_a_killed_server_comes_back_on_the_same_ports_and_keeps_its_worker(home: Home) -> None:
    before = await engine.ensure_up(home)
    kill(before.pids["server"])
    assert (await engine.status(home)).server == "stopped"
    after = await engine.ensure_up(home)
    assert (after.address, after.ui_url) == (before.address, before.ui_url)
    assert after.pids["server"] != before.pids["server"]
    assert after.pids["worker"] == before.pids["worker"]
    for pid in after.pids.values():
        kill(pid)
    again = await engine.ensure_up(home)
    assert again.up
    assert again.address == before.address


@pytest.mark.parametrize("life_s", [0.7, *(pytest.param(s, marks=pytest.mark.soak) for s in (0.5, 0.9))])
async def test_a_starter_killed_halfway_is_mended(home: Home, life_s: float) -> None:
    starter = await start_elsewhere(home)
    await asyncio.sleep(life_s)
    starter.kill()
    await starter.wait()
    up = await engine.ensure_up(home)
    assert locks.holder(home.engine / "server.lock") == up.pids["server"]
    assert locks.holder(home.engine / "worker.lock") == up.pids["worker"]


async def test_what_a_starter_had_no_time_for_is_done_by_the_next(home: Home) -> None:
    before = await engine.ensure_up(home)
    kill(before.pids["worker"])
    await server_retention(home, hours=24)
    await engine.ensure_up(home)
    assert await server_retention(home) == 720


async def server_retention(home: Home, *, hours: int | None = None) -> int:
    client = await connection.connect(home)
    service, name = client.workflow_service, client.namespace
    if hours:
        kept = NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=hours * 3600))
        await service.update_namespace(UpdateNamespaceRequest(namespace=name, config=kept))
    described = await service.describe_namespace(DescribeNamespaceRequest(namespace=name))
    return described.config.workflow_execution_retention_ttl.seconds // 3600


async def test_a_server_whose_record_is_lost_is_replaced(home: Home) -> None:
    before = await engine.ensure_up(home)
    (home.engine / "server.json").write_text('{"pid": 1')
    after = await engine.ensure_up(home)
    assert gone(before.pids["server"])
    assert after.up


async def test_a_server_that_hangs_is_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await engine.ensure_up(home)
    monkeypatch.setattr(server, "HANGING_S", 3.0)
    monkeypatch.setattr(server, "GRACE_S", 0.5)
    monkeypatch.setattr(connection, "CONNECT_S", 1.0)
    stop(before.pids["server"])
    after = await engine.ensure_up(home)
    assert gone(before.pids["server"])
    assert after.address == before.address


async def test_a_worker_of_another_version_is_replaced(home: Home) -> None:
    before = await engine.ensure_up(home)
    record = read_worker(home)
    assert record is not None
    (home.engine / "worker.json").write_text(record.model_copy(update={"version": "0.0.1"}).model_dump_json())
    said: list[str] = []
    after = await engine.ensure_up(home, say=said.append)
    assert gone(before.pids["worker"])
    assert after.pids["server"] == before.pids["server"]
    assert any("0.0.1" in text for text in said)


async def test_a_worker_that_cannot_start_says_why(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("ORCH_METRICS", address)
        with pytest.raises(UnreachableError, match=f"metrics cannot be served at {address}"):
            await engine.ensure_up(home)


@pytest.mark.soak
async def test_two_state_directories_run_side_by_side(home: Home) -> None:
    other = Home(home.root.with_name("other"))
    try:
        one, two = await asyncio.gather(engine.ensure_up(home), engine.ensure_up(other))
        assert one.up
        assert two.up
        assert one.address != two.address
        await engine.down(home)
        assert (await engine.status(other)).up
    finally:
        await engine.down(other)


async def test_a_taken_port_is_refused_by_name_and_another_one_is_recorded(home: Home) -> None:
    await engine.ensure_up(home)
    await engine.down(home)
    recorded = read_server(home)
    assert recorded is not None
    with socket.create_server(("127.0.0.1", recorded.port)):
        with pytest.raises(RefusedError, match=str(recorded.port)) as refused:
            await engine.ensure_up(home)
        assert "orch up --port" in refused.value.hint
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        moved = await engine.ensure_up(home, port=port)
    assert moved.address == f"127.0.0.1:{port}"
    assert moved.ui_url == recorded.ui_url
    assert (await engine.ensure_up(home)).address == moved.address
    with pytest.raises(RefusedError, match="already runs on port"):
        await engine.ensure_up(home, port=recorded.port)


async def test_a_recorded_server_that_is_gone_is_unreachable(home: Home) -> None:
    up = await engine.ensure_up(home)
    kill(up.pids["server"])
    with pytest.raises(UnreachableError) as error:
        await connection.connect(home)
    assert "orch up" in error.value.hint


async def test_a_cluster_in_the_environment_leaves_no_local_engine(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    with pytest.raises(RefusedError, match="cluster"):
        await engine.ensure_up(home)


def test_the_link_of_a_run_survives_odd_names() -> None:
    url = engine.run_url("http://127.0.0.1:8233/", "default", "goal/ä b")
    assert url == "http://127.0.0.1:8233/namespaces/default/workflows/goal%2F%C3%A4%20b"
    assert engine.run_url("http://h:1", "n", "w", "r") == "http://h:1/namespaces/n/workflows/w/r/history"
