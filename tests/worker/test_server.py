from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from orch.activities.home import Home
from orch.worker import engine, locks, server
from orch.worker.connection import connect
from orch.worker.records import read_server
from orch.worker.search_attributes import NAMES, register
from orch.workflows.errors import UnreachableError

pytestmark = pytest.mark.engine


async def test_the_database_is_in_wal_mode(shared_home: Home) -> None:
    with closing(sqlite3.connect(shared_home.engine / "temporal.db")) as database:
        assert database.execute("pragma journal_mode").fetchone() == ("wal",)


async def test_finished_runs_are_kept_for_a_month(shared_home: Home) -> None:
    client = await connect(shared_home)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    assert described.config.workflow_execution_retention_ttl.seconds == 720 * 3600


async def test_runs_can_be_found_by_kind_repo_and_status(shared_home: Home) -> None:
    client = await connect(shared_home)
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    assert set(NAMES) <= set(listed.custom_attributes)
    assert (await client.count_workflows("OrchKind = 'goal' AND OrchStatus = 'running'")).count == 0


async def test_a_namespace_of_a_cluster_gets_the_search_attributes_it_lacks(shared_home: Home) -> None:
    record = read_server(shared_home)
    assert record is not None
    await _add_namespace(await connect(shared_home), "elsewhere")
    environ = {"TEMPORAL_ADDRESS": record.address, "TEMPORAL_NAMESPACE": "elsewhere"}
    client = await connect(shared_home, environ=environ)
    request = ListSearchAttributesRequest(namespace="elsewhere")
    assert not set(NAMES) & set((await client.operator_service.list_search_attributes(request)).custom_attributes)
    await register(client)
    await register(client)
    assert set(NAMES) <= set((await client.operator_service.list_search_attributes(request)).custom_attributes)


async def _add_namespace(client: Client, name: str) -> None:
    kept = Duration(seconds=86400)
    request = RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=kept)
    await client.workflow_service.register_namespace(request)
    while True:  # the frontend learns of it from a cache
        try:
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=name))
            await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=name))
        except RPCError:
            await asyncio.sleep(0.1)
        else:
            return


def test_the_database_of_another_version_is_backed_up(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.engine.mkdir()
    for name in ("temporal.db", "temporal.db-wal"):
        (home.engine / name).write_text(name)
    server._back_up(home, "1.0.0")
    assert {path.name for path in (home.engine / "backup-1.0.0").iterdir()} == {"temporal.db", "temporal.db-wal"}


async def test_a_second_server_on_one_database_is_impossible(shared_home: Home) -> None:
    record = read_server(shared_home)
    assert record is not None
    assert locks.take(shared_home.engine / "server.lock") is None
    with pytest.raises(UnreachableError, match="another server"):
        server._spawn(shared_home, record)
    assert locks.holder(shared_home.engine / "server.lock") == record.pid


async def test_the_engine_listens_on_loopback_only(shared_home: Home) -> None:
    status = await engine.status(shared_home)
    for pid in status.pids.values():
        listening = [c for c in psutil.Process(pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
        assert {connection.laddr.ip for connection in listening} <= {"127.0.0.1"}


async def test_the_server_inherits_no_secrets_and_no_terminal(shared_home: Home) -> None:
    status = await engine.status(shared_home)
    process = psutil.Process(status.pids["server"])
    assert process.environ()["HOME"] == str(shared_home.engine)  # none of the user's settings
    assert process.terminal() is None
