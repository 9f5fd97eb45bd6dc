"""The activity against a real engine: an update's id is the ticket; what it hears when the round is away or over."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from orch.activities.home import Home
from orch.activities.lanes import intake, round_door
from orch.activities.lanes.intake import Intake
from orch.activities.lanes.round_door import EngineRound, UnansweredError
from orch.worker.connection import connect
from orch.workflows.effects import WAIT, options
from orch.workflows.effects import take_in as take_in_effect
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.round.lane import TakeIn, TakenIn
from orch.workflows.model.round.ticket import Cause, Submission, TicketState, TicketStatus

pytestmark = pytest.mark.engine
PATIENCE_S = 60.0


@workflow.defn(name="Round")
class TinyRound:
    """What intake needs of a round."""

    def __init__(self) -> None:
        self.heard: list[Submission] = []
        self.states: dict[str, TicketStatus] = {}
        self.over = False

    @workflow.run
    async def run(self, request: TakeIn) -> TakenIn:
        config = options(WAIT, queue=workflow.info().task_queue, summary="intake")
        watching = workflow.start_activity(take_in_effect, request, **config)
        await workflow.wait_condition(lambda: self.over)
        watching.cancel()
        try:
            await watching
        except CancelledError:
            pass
        except Exception as error:
            if not isinstance(error.__cause__, CancelledError):
                raise
        last = request.model_copy(update={"once": True})
        return await workflow.execute_activity(take_in_effect, last, **config)

    @workflow.signal
    def close(self) -> None:
        self.over = True

    @workflow.signal
    def measured(self, ticket: str) -> None:
        self.states[ticket] = self.states[ticket].model_copy(update={"state": TicketState.MEASURED})

    @workflow.query
    def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        return tuple(self.states.values())

    @workflow.query
    def calls(self) -> list[str]:
        return [each.ticket for each in self.heard]

    @workflow.update
    def submit(self, submission: Submission) -> TicketStatus:
        self.heard.append(submission)
        state = TicketState.REJECTED if submission.refused else TicketState.QUEUED
        answer = TicketStatus(ticket=submission.ticket, state=state, cause=submission.refused)
        self.states[submission.ticket] = answer
        return answer

    @submit.validator
    def _may_submit(self, submission: Submission) -> None:
        if submission.lane != "l1":
            raise ApplicationError("no such lane", type="UnknownLane")


@pytest.fixture
async def engine(engine_home: Home) -> Client:
    return await connect(engine_home)


@asynccontextmanager
async def serving(client: Client, lane: Any, queue: str) -> AsyncIterator[None]:
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[TinyRound],
        activities=[Intake(lane.home).take_in],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        yield


async def until_told(lane: Any, ticket: str, state: str) -> None:
    """Until the wrapper tells the lane so."""
    async with asyncio.timeout(PATIENCE_S):
        while (await asyncio.to_thread(lane.call, "status", ticket, "--wait", "1"))[1]["status"] != state:
            pass


async def started(client: Client, lane: Any, queue: str) -> WorkflowHandle[Any, Any]:
    lane.key = AttemptKey(run=f"round-{uuid.uuid4().hex[:8]}", iteration=1, candidate=1, binding=1)
    assert lane.tree
    request = lane.request(once=False)
    return await client.start_workflow("Round", request, id=lane.key.run, task_queue=queue, result_type=TakenIn)


async def test_a_lane_hands_over_to_a_running_round_and_hears_of_it(
    engine: Client, lane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MIRROR_S", 0.1)
    queue = uuid.uuid4().hex
    handle = await started(engine, lane, queue)
    async with serving(engine, lane, queue):
        (lane.tree / "src/a.py").write_text("a = 2\n")
        first = (await asyncio.to_thread(lane.submit))["ticket"]
        await until_told(lane, first, "queued")
        await handle.signal("measured", first)
        await until_told(lane, first, "measured")
    (lane.tree / "src/a.py").write_text("a = 3\n")
    second = (await asyncio.to_thread(lane.submit))["ticket"]  # while no worker is there
    await handle.signal("close")
    async with serving(engine, lane, queue):
        await handle.result()
        assert await handle.query("calls") == [first, second]
        assert lane.status(second)["state"] == "queued"


async def test_the_same_ticket_again_gets_the_first_answer(engine: Client, lane: Any) -> None:
    queue = uuid.uuid4().hex
    handle = await started(engine, lane, queue)
    door = door_of(engine, lane)
    submission = Submission(ticket="r1-l1-00000000", lane="l1", digest="0" * 64)
    async with serving(engine, lane, queue):
        first = await door.submit(submission)
        await handle.signal("measured", first.ticket)
        again = await door.submit(submission.model_copy(update={"refused": Cause.PROTECTED}))
        assert again == first
        assert await handle.query("calls") == [first.ticket]
        assert [each.state for each in await door.tickets("l1")] == [TicketState.MEASURED]
        stranger = await door.submit(Submission(ticket="r1-l9-00000000", lane="l9", digest="0" * 64))
        assert (stranger.state, stranger.cause) == (TicketState.REJECTED, Cause.MALFORMED)
        assert "no such lane" in stranger.detail
        await handle.signal("close")
        await handle.result()
        assert await door.submit(submission) == first
        late = await door.submit(Submission(ticket="r1-l1-00000001", lane="l1", digest="1" * 64))
        assert (late.state, late.cause) == (TicketState.REJECTED, Cause.ROUND_OVER)


async def test_a_round_without_a_worker_does_not_answer(
    engine: Client, lane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_door, "PATIENCE", round_door.PATIENCE / 20)
    handle = await started(engine, lane, uuid.uuid4().hex)
    door = door_of(engine, lane)
    with pytest.raises(UnansweredError):
        await door.submit(Submission(ticket="r1-l1-00000000", lane="l1", digest="0" * 64))
    with pytest.raises(UnansweredError):
        await door.tickets("l1")
    await handle.terminate()
    assert await door_of(engine, lane, run="round-that-never-was").tickets("l1") == ()


async def test_asking_is_given_up_when_it_is_cancelled(engine: Client, lane: Any) -> None:
    handle = await started(engine, lane, uuid.uuid4().hex)
    submission = Submission(ticket="r1-l1-00000000", lane="l1", digest="0" * 64)
    asking = asyncio.create_task(door_of(engine, lane).submit(submission))
    await asyncio.sleep(0.5)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await handle.terminate()


def door_of(client: Client, lane: Any, run: str = "") -> EngineRound:
    """The door outside of an activity."""
    door = EngineRound.__new__(EngineRound)
    door._handle = client.get_workflow_handle(run or lane.key.run)
    return door
