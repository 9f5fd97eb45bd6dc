"""What runs side by side ends together, and in an order that a replay repeats."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from orch.activities.home import Home
from orch.worker.connection import connect
from orch.workflows.stopping import together

pytestmark = [pytest.mark.engine]

SIDES = 12
LONG = timedelta(hours=1)


@workflow.defn
class SideBySide:
    """Waits in many ways at once, until it is cancelled."""

    @workflow.run
    async def run(self) -> None:
        await together(*(self._wait(number) for number in range(SIDES)))

    async def _wait(self, number: int) -> None:
        if number % 2:
            await workflow.sleep(LONG)
        else:
            await workflow.execute_activity("of_nobody", task_queue="nobody", start_to_close_timeout=LONG)


async def test_what_is_cancelled_together_replays(engine_home: Home) -> None:
    client, name = await connect(engine_home), f"side-{uuid.uuid4().hex[:8]}"
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=name, workflows=[SideBySide], workflow_runner=runner):
        handle = await client.start_workflow(
            SideBySide.run, id=name, task_queue=name, execution_timeout=timedelta(seconds=60)
        )
        while len((await handle.describe()).raw_description.pending_activities) < SIDES / 2:
            await asyncio.sleep(0.05)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    history = await handle.fetch_history()

    for _ in range(5):
        await Replayer(workflows=[SideBySide], workflow_runner=runner).replay_workflow(history)


@workflow.defn
class OneFails:
    """Waits in two ways, of which one breaks while the other clears up."""

    @workflow.run
    async def run(self) -> list[str]:
        told: list[str] = []

        async def slow() -> None:
            try:
                await workflow.sleep(LONG)
            finally:
                await workflow.sleep(timedelta(seconds=0.1))
                told.append("cleared up")

        async def broken() -> None:
            raise LookupError("broken")

        try:
            await together(slow(), broken())
        except LookupError as error:
            told.append(str(error))
        return told


async def test_failure_of_one_is_raised_once_the_others_have_cleared_up(engine_home: Home) -> None:
    client, name = await connect(engine_home), f"fails-{uuid.uuid4().hex[:8]}"
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=name, workflows=[OneFails], workflow_runner=runner):
        told = await client.execute_workflow(
            OneFails.run, id=name, task_queue=name, execution_timeout=timedelta(seconds=60)
        )

    assert told == ["cleared up", "broken"]
