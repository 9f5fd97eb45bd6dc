"""One lane as a workflow: what it records, what it does on its host, and that a restart doubles nothing of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from orch.activities import effect
from orch.activities.home import Home
from orch.worker.connection import connect
from orch.workflows import lanes
from orch.workflows.host import host_queue
from orch.workflows.lane_state import LaneState
from orch.workflows.model.attempt import AgentReport
from orch.workflows.model.budget import BindingState
from orch.workflows.model.event import EVENT, Event
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Account, Outcome, OutcomeKind
from orch.workflows.model.round.event import (
    BindingCancelled,
    BindingClaimed,
    BindingReserved,
    BindingSettled,
    LaneEnded,
    LaneReady,
    LaneResumed,
    LaneStarted,
    LaneWaiting,
)
from orch.workflows.model.round.lane import LaneEnd, LaneOpened
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LaneBudget,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.usage import Usage

from .one_lane import KILLED, OPENED, Asked, LaneHost, OneLane, serving

pytestmark = [pytest.mark.engine]

ONE = [LaneStarted, BindingReserved, LaneReady, BindingClaimed, BindingSettled, LaneEnded]
OK, FAILED = Exit(kind=ExitKind.OK), Exit(kind=ExitKind.FAILED, number=1)
NEVER = Exit(kind=ExitKind.NOT_STARTED)
DONE = AgentReport(exit=OK, usage=Usage(tokens_in=10, wall_s=1.0), message="all done")
CRASHED = AgentReport(exit=FAILED, usage=Usage(tokens_in=30, usd=0.1))


def told(kind: OutcomeKind, **facts: Any) -> AgentReport:
    """An agent that reports a failure on its stream."""
    retry_at = facts.pop("retry_at", None)
    account = Account(error=kind, detail="said so", retry_at=retry_at)
    return AgentReport(exit=FAILED, account=account, **{"usage": Usage(tokens_in=5), **facts})


def blocked(kind: OutcomeKind, retry_at: float | None) -> AgentReport:
    """An agent that may not be launched now."""
    return AgentReport(exit=NEVER, blocked=Outcome(kind=kind, detail="asked to wait", retry_at=retry_at))


def plan(agent: str = "pi:m", **budget: Any) -> RoundPlan:
    entry = Entry(id="e", plane="algorithm", hypothesis="h", headroom=0.5)
    lane = LanePlan(id="fast", entry=entry, globs=("src/**",), agent=agent, budget=LaneBudget(**budget))
    return RoundPlan(
        id="r",
        campaign="c",
        campaign_digest="a" * 64,
        incumbent="0" * 40,
        metric=Metric(name="time", direction=Direction.LOWER, unit="ms"),
        gates=Gates(),
        devices=(DeviceSet(name="cpu"),),
        commands=Commands(benchmark=Command(run="true")),
        lanes=(lane,),
    )


class Lane:
    """A lane that is run, its worker being ended and started anew as the test likes."""

    def __init__(self, client: Client, asked: RoundPlan, host: LaneHost, left_s: float) -> None:
        self.client, self.plan, self.host, self.left_s = client, asked, host, left_s
        self.name = f"h-{uuid.uuid4().hex[:8]}"
        self.handle: WorkflowHandle[Any, Any]

    async def start(self) -> None:
        self.handle = await self.client.start_workflow(
            OneLane.run,
            Asked(plan=self.plan, host=self.name, left_s=self.left_s),
            id=self.name,
            task_queue=host_queue(self.name),
            execution_timeout=timedelta(seconds=60),
        )

    def worker(self) -> Any:
        """A worker for as long as its context lasts."""
        return serving(self.client, self.host, self.name)

    async def until(self, line: str) -> None:
        """Until the host has done that."""
        while line not in self.host.lines:
            await asyncio.sleep(0.02)

    async def events(self) -> list[Event]:
        return [EVENT.validate_python(event) for event in await self.handle.result()]

    async def whole(self) -> list[Event]:
        """Run it to its end by one worker."""
        await self.start()
        async with self.worker():
            return await self.events()


@pytest.fixture
async def lane(engine_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[Lane]]:
    """Make a lane with what its host brings; a cancellation is heard sooner there than usual."""
    monkeypatch.setattr(effect, "BEAT_S", 0.1)

    async def make(*agents: Any, left_s: float = 50, agent: str = "pi:m", **more: Any) -> Lane:
        known = {name: more.pop(name) for name in ("opened", "intake") if name in more}
        host = LaneHost(tmp_path, agents, **known)
        return Lane(await connect(engine_home), plan(agent, **more), host, left_s)

    return make


Make = Callable[..., Awaitable[Lane]]


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def ended(events: list[Event]) -> tuple[LaneEnd, str]:
    last = events[-1]
    assert isinstance(last, LaneEnded)
    return last.end, last.detail


def state(one: Lane, events: list[Event]) -> LaneState:
    """The fold of the events, as after a restart."""
    found = LaneState(one.plan.lanes[0], one.plan.digest)
    for event in events:
        found.apply(event)
    return found


def states(one: Lane, events: list[Event]) -> list[BindingState]:
    return [binding.state for binding in state(one, events).ledger.bindings]


async def test_an_agent_that_ends_well_ends_the_lane(lane: Make) -> None:
    one = await lane(DONE, attempts=3)
    events = await one.whole()

    assert kinds(events) == ONE
    assert ended(events) == (LaneEnd.DONE, "all done")
    first, *begun, last, closed = one.host.lines
    assert (first, sorted(begun), last, closed) == ("open", ["agent 1", "watch"], "once", "close")
    assert state(one, events).usage == DONE.usage
    (asked,) = one.host.asked
    assert (asked.prompt, asked.launch, asked.session) == (OPENED.prompt, 1, None)


async def test_a_crash_is_followed_by_a_binding_of_its_own_while_attempts_are_left(lane: Make) -> None:
    one = await lane(CRASHED, CRASHED, CRASHED, attempts=3, tokens=1000, usd=1.0, turns=9)
    events = await one.whole()

    assert ended(events) == (LaneEnd.ATTEMPTS, "crashed: exit 1")
    assert [event.binding.tokens for event in events if isinstance(event, BindingReserved)] == [1000, 970, 940]
    assert [request.agent for request in one.host.asked] == [
        "pi:m,max-turns=9,max-tokens=1000,max-usd=1.0",
        "pi:m,max-turns=9,max-tokens=970,max-usd=0.9",
        "pi:m,max-turns=9,max-tokens=940,max-usd=0.8",
    ]
    assert [request.launch for request in one.host.asked] == [1, 2, 3]
    assert [request.session for request in one.host.asked] == [None] * 3


async def test_what_nobody_reported_is_charged_as_its_worst_case(lane: Make) -> None:
    one = await lane(AgentReport(exit=FAILED), attempts=9, tokens=1000)
    events = await one.whole()

    assert ended(events) == (LaneEnd.TOKENS, "crashed: exit 1")
    assert len(one.host.asked) == 1


@pytest.mark.parametrize(
    ("report", "end"),
    [
        (told(OutcomeKind.NOT_AUTHORISED), LaneEnd.AGENT_UNUSABLE),
        (told(OutcomeKind.OUT_OF_QUOTA), LaneEnd.AGENT_UNUSABLE),
        (blocked(OutcomeKind.NOT_AUTHORISED, None), LaneEnd.AGENT_UNUSABLE),
        (AgentReport(exit=NEVER), LaneEnd.AGENT_UNUSABLE),
        (AgentReport(exit=OK, account=Account(final=True)), LaneEnd.DONE),
        (told(OutcomeKind.RATE_LIMITED, retry_at=9e9), LaneEnd.DEADLINE),
        (told(OutcomeKind.OVERLOADED), LaneEnd.TOKENS),
        (AgentReport(exit=Exit(kind=ExitKind.TIMED_OUT, detail="deadline")), LaneEnd.DEADLINE),
        (blocked(OutcomeKind.TIMED_OUT, None), LaneEnd.DEADLINE),
    ],
)
async def test_how_a_launch_ended_decides_whether_there_is_another(
    lane: Make, report: AgentReport, end: LaneEnd
) -> None:
    tokens = 5 if end is LaneEnd.TOKENS else 1000
    one = await lane(report, attempts=9, tokens=tokens)
    events = await one.whole()

    assert ended(events)[0] is end
    assert len(one.host.asked) == 1
    assert LaneWaiting not in kinds(events)


async def test_what_never_ran_is_charged_nothing(lane: Make) -> None:
    one = await lane(AgentReport(exit=NEVER), tokens=1000, usd=1.0)
    found = state(one, await one.whole())

    assert (found.usage.tokens, found.usage.usd) == (0, 0.0)


async def test_a_limit_that_passes_is_waited_for_and_the_conversation_goes_on(
    lane: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "SLOT_KEPT_S", 0.5)
    one = await lane(told(OutcomeKind.RATE_LIMITED, session="0199-own", retry_at=1.0), DONE, attempts=2)
    events = await one.whole()

    rest = [LaneWaiting, LaneResumed]
    assert kinds(events) == [*ONE[:-1], *rest, BindingReserved, BindingClaimed, BindingSettled, LaneEnded]
    assert ended(events)[0] is LaneEnd.DONE
    assert [line for line in one.host.lines if line != "watch"] == [
        "open", "agent 1", "yield", "open", "agent 2", "once", "close",
    ]  # fmt: skip
    session = one.host.asked[1].session
    assert session is not None
    assert (session.id, session.attempt) == ("0199-own", "i1-c1-b1")


async def test_a_limit_that_passes_is_not_waited_for_when_no_attempt_is_left(lane: Make) -> None:
    events = await (await lane(told(OutcomeKind.RATE_LIMITED, retry_at=1.0), attempts=1)).whole()

    assert ended(events) == (LaneEnd.ATTEMPTS, "rate limited: said so")


async def test_who_may_not_be_launched_yet_waits_with_the_same_binding(lane: Make) -> None:
    one = await lane(blocked(OutcomeKind.RATE_LIMITED, time.time() + 1), DONE, attempts=1)
    events = await one.whole()

    assert kinds(events) == [*ONE[:-2], LaneWaiting, LaneResumed, *ONE[-2:]]
    assert ended(events)[0] is LaneEnd.DONE
    assert [request.launch for request in one.host.asked] == [1, 1]


@pytest.mark.parametrize(
    ("opened", "detail"),
    [
        (LaneOpened(path="/lane", failed=Cause.SETUP_FAILED, detail="set-up: exit 3"), "set-up: exit 3"),
        (LaneOpened(path="/lane", failed=Cause.PROBE_FAILED, detail="outside"), "outside"),
        (LaneOpened(path=None), "the lane's deadline passed before there was a slot"),
    ],
)
async def test_a_lane_that_cannot_be_opened_launches_nothing(lane: Make, opened: LaneOpened, detail: str) -> None:
    one = await lane(opened=[opened])
    events = await one.whole()

    assert kinds(events) == [LaneStarted, BindingReserved, LaneReady, BindingCancelled, LaneEnded]
    assert ended(events) == (LaneEnd.NOT_OPENED, detail)
    assert one.host.lines == ["open", "close"]


async def test_a_launch_that_was_reserved_in_time_is_not_made_after_the_deadline(lane: Make) -> None:
    """The worker dies while the lane waits for its workspace, and the next one comes after the deadline."""
    again = asyncio.Event()

    async def slow() -> LaneOpened:
        await again.wait()
        return OPENED

    one = await lane(DONE, opened=[slow], left_s=6, attempts=5)
    await one.start()
    async with one.worker():
        await one.until("open")
    await asyncio.sleep(6)
    again.set()
    async with one.worker():
        events = await one.events()

    assert kinds(events) == [LaneStarted, BindingReserved, LaneReady, BindingCancelled, LaneEnded]
    assert ended(events) == (LaneEnd.DEADLINE, lanes.LATE)
    assert "agent 1" not in one.host.lines


async def test_a_worker_that_dies_costs_no_launch_and_no_charge(lane: Make) -> None:
    again = asyncio.Event()

    async def slow() -> AgentReport:
        await again.wait()
        return CRASHED

    one = await lane(slow, DONE, attempts=2, tokens=1000)
    await one.start()
    async with one.worker():
        await one.until("agent 1")
        await one.until("watch")
    again.set()
    async with one.worker():
        events = await one.events()

    assert [line for line in one.host.lines if line.startswith("agent")] == ["agent 1", "agent 2"]
    assert kinds(events) == [*ONE[:-1], BindingReserved, BindingClaimed, BindingSettled, LaneEnded]
    assert state(one, events).usage == CRASHED.usage + DONE.usage


async def test_a_step_that_breaks_leaves_its_claim_charged(lane: Make) -> None:
    async def broken() -> AgentReport:
        raise LookupError("a bug")

    one = await lane(broken, attempts=2, tokens=1000)
    events = await one.whole()

    assert ended(events) == (LaneEnd.BROKEN, "LookupError: a bug")
    assert states(one, events) == [BindingState.CLAIMED]
    assert one.host.lines[-2:] == ["once", "close"]


async def test_nobody_works_for_a_lane_whose_outbox_is_not_looked_at(lane: Make) -> None:
    async def endless() -> AgentReport:
        await asyncio.Event().wait()
        return DONE

    one = await lane(endless, intake=LookupError("the disk is gone"), attempts=3)
    events = await one.whole()

    assert ended(events) == (LaneEnd.BROKEN, "intake: LookupError: the disk is gone")
    assert state(one, events).usage == KILLED.usage
    assert one.host.lines[-1] == "close"


@pytest.mark.parametrize("alone", [True, False])
async def test_a_lane_that_is_stopped_ends_its_agent_and_keeps_what_that_used(lane: Make, alone: bool) -> None:
    async def endless() -> AgentReport:
        await asyncio.Event().wait()
        return DONE

    one = await lane(endless, attempts=3)
    await one.start()
    async with one.worker():
        await one.until("agent 1")
        await (one.handle.signal(OneLane.stop) if alone else one.handle.cancel())
        if alone:
            events = await one.events()
        else:
            with pytest.raises(WorkflowFailureError):
                await one.handle.result()
            events = [EVENT.validate_python(event) for event in await one.handle.query(OneLane.told)]

    assert kinds(events) == ONE
    assert ended(events) == (LaneEnd.CANCELLED, "cancelled")
    assert state(one, events).usage == KILLED.usage
    assert "once" not in one.host.lines
    assert one.host.lines[-1] == "close"


async def test_a_lane_that_is_stopped_ends_as_cancelled_even_if_its_step_fails_over_it(lane: Make) -> None:
    async def failing() -> AgentReport:
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("in the middle of a call")

    one = await lane(failing, attempts=3)
    await one.start()
    async with one.worker():
        await one.until("agent 1")
        await one.handle.signal(OneLane.stop)
        events = await one.events()

    assert ended(events) == (LaneEnd.CANCELLED, "LookupError: in the middle of a call")
    assert states(one, events) == [BindingState.CLAIMED]
    assert "once" not in one.host.lines


async def test_a_lane_that_is_stopped_before_its_launch_gives_its_binding_up(lane: Make) -> None:
    async def never() -> LaneOpened:
        await asyncio.Event().wait()
        return OPENED

    one = await lane(opened=[never])
    await one.start()
    async with one.worker():
        await one.until("open")
        await one.handle.signal(OneLane.stop)
        events = await one.events()

    assert kinds(events) == [LaneStarted, BindingReserved, BindingCancelled, LaneEnded]
    assert states(one, events) == [BindingState.CANCELLED]


async def test_a_spent_budget_stays_spent_when_the_worker_is_started_anew(lane: Make) -> None:
    one = await lane(CRASHED, CRASHED, CRASHED, attempts=2)
    await one.start()
    async with one.worker():
        await one.until("close")
    async with one.worker():
        events = await one.events()

    assert ended(events)[0] is LaneEnd.ATTEMPTS
    assert len(one.host.asked) == 2


async def test_a_history_is_folded_to_the_state_that_it_was_made_by(lane: Make) -> None:
    one = await lane(CRASHED, DONE, attempts=2, tokens=1000)
    events = await one.whole()

    found = state(one, events)
    assert found.attempt is not None
    assert (found.attempt.name, found.opened, found.end) == ("i1-c1-b1", OPENED, LaneEnd.DONE)
    assert found.outcome == Outcome(kind=OutcomeKind.DONE)
    assert states(one, events) == [BindingState.SETTLED] * 2
