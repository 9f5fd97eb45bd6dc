"""A run that the worker cannot read: for want of a key it waits and says so; tampered with, it ends."""

from __future__ import annotations

import asyncio
import os
import zlib
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import RawValue, SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError

from orch.activities.home import Home
from orch.cli.halted import halted
from orch.cli.link import Link
from orch.cli.listing import list_runs
from orch.cli.runs import ledger_page
from orch.worker.connection import connect
from orch.worker.keys import add_key
from orch.worker.search_attributes import NAMES
from orch.workflows.errors import RefusedError
from orch.workflows.host import ORCH_QUEUE

pytestmark = pytest.mark.engine

KIND = TypedSearchAttributes([SearchAttributePair(SearchAttributeKey.for_keyword(NAMES[0]), "goal")])


async def begin(client: Client, name: str, request: object) -> str:
    """Start a goal run with this input and return its id."""
    run = f"{name}-{os.getpid()}"
    await client.start_workflow(
        "Goal", request, id=run, task_queue=ORCH_QUEUE, memo={"goal": "hidden"}, search_attributes=KIND
    )
    return run


async def test_a_run_whose_key_the_worker_lacks_waits_and_says_so(shared_home: Home, tmp_path: Path) -> None:
    environ = {"ORCH_KEYS": str(tmp_path / "keys")}
    key = add_key(shared_home, environ)
    run = await begin(await connect(shared_home, environ=environ), "goal-unknown", {"junk": 1})
    client = await connect(shared_home)
    link = Link(shared_home)

    async with asyncio.timeout(60):
        while (why := await halted(link, run)) is None:
            await asyncio.sleep(0.1)

    assert f"{run} cannot go on: a payload is encrypted with key '{key.id}'" in why.message
    (row,) = [row for row in await list_runs(link) if row.id == run]
    assert row.goal.startswith("(unreadable: a payload is encrypted with key")
    described = await client.get_workflow_handle(run).describe()
    assert described.status is WorkflowExecutionStatus.RUNNING
    await client.get_workflow_handle(run).terminate()


async def test_a_run_whose_payload_was_tampered_with_ends(shared_home: Home) -> None:
    client = await connect(shared_home)
    cut = Payload(metadata={"encoding": b"binary/zlib"}, data=zlib.compress(b"junk" * 1000)[:-8])
    run = await begin(client, "goal-tampered", RawValue(cut))

    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(client.get_workflow_handle(run).result(), timeout=60)

    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "TamperedPayload"
    with pytest.raises(RefusedError, match="changed"):
        await (await connect(shared_home)).data_converter.decode([cut])
    assert (await ledger_page(Link(shared_home), run, 0)).ended
