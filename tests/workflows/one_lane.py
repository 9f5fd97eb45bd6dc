"""A workflow that runs one lane as a round does, and its host: activities whose effects are lines in a file.

A line that was written stays, whatever becomes of the worker: so a launch that is made twice is seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from orch.activities.effect import effect, kill_requested
from orch.worker.assembly import BUGS
from orch.workflows.host import host_queue
from orch.workflows.lane_state import LaneState
from orch.workflows.lane_steps import LaneSteps
from orch.workflows.lanes import run_lane
from orch.workflows.model.attempt import AgentReport, AttemptKey, CloseAttempt, RunAgent, YieldSlot
from orch.workflows.model.base import Value
from orch.workflows.model.event import Event
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.lane import LaneOpened, OpenLane, TakeIn, TakenIn
from orch.workflows.model.round.plan import RoundPlan
from orch.workflows.model.usage import Usage
from orch.workflows.rules.outcome import STOPPED

KILLED = AgentReport(
    exit=Exit(kind=ExitKind.SIGNALLED, number=15, detail=STOPPED), usage=Usage(tokens_in=7, wall_s=1.0)
)
"""What an agent leaves that is ended by a cancellation."""

SOON = timedelta(seconds=0.1)
"""Between heartbeats, by which a cancellation is heard."""

OPENED = LaneOpened(path="/lane", prompt="what to do")


Launched = AgentReport | Callable[[], Awaitable[AgentReport]]
Opened = LaneOpened | Callable[[], Awaitable[LaneOpened]]


class Asked(Value):
    """What starts the workflow."""

    plan: RoundPlan
    host: str
    left_s: float


@workflow.defn(name="OneLane")
class OneLane:
    """A round of one lane, without any measurement."""

    @workflow.init
    def __init__(self, asked: Asked) -> None:
        self.state = LaneState(asked.plan.lanes[0], asked.plan.digest)
        self.events: list[Event] = []
        self.task: asyncio.Task[None] | None = None

    def record(self, kind: type[Any], **facts: Any) -> Any:
        """Append an event and fold it."""
        event = kind(seq=len(self.events) + 1, at=workflow.now().isoformat(), **facts)
        self.events.append(event)
        self.state.apply(event)
        return event

    @workflow.run
    async def run(self, asked: Asked) -> list[Event]:
        """Return the lane's events; a lane that was stopped alone is no failure."""
        steps = LaneSteps(
            plan=asked.plan,
            lane=asked.plan.lanes[0],
            attempt=AttemptKey(run="round-c-r", iteration=1, candidate=1, binding=1),
            host=asked.host,
            store="store",
            sandbox=True,
            deadline=workflow.now().timestamp() + asked.left_s,
        )
        self.task = asyncio.ensure_future(run_lane(self, self.state, steps))
        try:
            await self.task
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is not None:
                raise
        return self.events

    @workflow.signal
    def stop(self) -> None:
        """End the lane, not the workflow."""
        if self.task is not None:
            self.task.cancel()

    @workflow.query
    def told(self) -> list[Event]:
        """The lane's events so far."""
        return self.events


class LaneHost:
    """The steps of one lane on a host.

    Args:
        folder: where the lines are written.
        agents: what each launch leaves, in turn; a function is called in the activity and may wait.
        opened: what each opening gives; the last one for all that follow.
        intake: what the watch ends with; None: it watches until it is cancelled.
    """

    def __init__(
        self,
        folder: Path,
        agents: Sequence[Launched] = (),
        opened: Sequence[Opened] = (OPENED,),
        intake: Exception | None = None,
    ) -> None:
        self.folder, self.agents, self.opened, self.intake = folder, agents, opened, intake
        self.asked: list[RunAgent] = []

    @property
    def lines(self) -> list[str]:
        """What was done, in order."""
        path = self.folder / "lines"
        return path.read_text().splitlines() if path.exists() else []

    def did(self, line: str) -> int:
        """Write a line; return how many like it there were before."""
        before = self.lines.count(line)
        with (self.folder / "lines").open("a") as file:
            file.write(f"{line}\n")
        return before

    @effect
    async def open_lane(self, request: OpenLane) -> LaneOpened:
        """Find the workspace, as the test says."""
        times = self.did("open")
        opened = self.opened[min(times, len(self.opened) - 1)]
        return opened if isinstance(opened, LaneOpened) else await opened()

    @effect
    async def run_agent(self, request: RunAgent) -> AgentReport:
        """A launch is a line; attaching to it again is none."""
        self.asked.append(request)
        begun = sum(line.startswith("agent") for line in self.lines)
        if f"agent {request.launch}" not in self.lines:
            self.did(f"agent {request.launch}")
            begun += 1
        try:
            agent = self.agents[begun - 1]
            found = agent if isinstance(agent, AgentReport) else await agent()
        except asyncio.CancelledError:
            if not kill_requested():
                raise
            found = KILLED
        if found.blocked is not None:  # nothing was launched
            (self.folder / "lines").write_text("\n".join([*self.lines[:-1], f"blocked {request.launch}", ""]))
            self.agents = [*self.agents[: begun - 1], *self.agents[begun:]]
        return found

    @effect
    async def take_in(self, request: TakeIn) -> TakenIn:
        """Watch until it is cancelled."""
        self.did("once" if request.once else "watch")
        if self.intake:
            await asyncio.sleep(0.2)
            raise self.intake
        if not request.once:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not kill_requested():
                    raise
        return TakenIn()

    @effect
    async def yield_slot(self, request: YieldSlot) -> None:
        """Give the slot back."""
        self.did("yield")

    @effect
    async def close_attempt(self, request: CloseAttempt) -> None:
        """Clear away."""
        self.did("close")


@asynccontextmanager
async def serving(client: Client, host: LaneHost, name: str) -> AsyncIterator[None]:
    """A worker of that host, which keeps no workflow in memory: each task of it is a replay."""
    activities: list[Callable[..., Any]] = [
        host.open_lane,
        host.run_agent,
        host.take_in,
        host.yield_slot,
        host.close_attempt,
    ]
    async with Worker(
        client,
        task_queue=host_queue(name),
        workflows=[OneLane],
        activities=activities,
        workflow_runner=UnsandboxedWorkflowRunner(),
        workflow_failure_exception_types=BUGS,
        max_cached_workflows=0,
        max_concurrent_workflow_task_polls=1,
        nonsticky_to_sticky_poll_ratio=1.0,
        max_heartbeat_throttle_interval=SOON,
        default_heartbeat_throttle_interval=SOON,
    ):
        yield
