"""The host of a round: activities that tell what they did, and measure what the test says.

Their noise is always the same, a few thousandths of a value.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError

from orch.activities.effect import effect, kill_requested
from orch.workflows.model.attempt import AgentReport, CloseAttempt, RunAgent, YieldSlot
from orch.workflows.model.event import Event
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.goal import CloseRun, KeepEvents
from orch.workflows.model.promotion import Promote, Promotion
from orch.workflows.model.round.campaign import RecordRound, RoundRecord
from orch.workflows.model.round.lane import (
    BuildTrial,
    Built,
    Composed,
    ComposeStep,
    LaneOpened,
    MeasurePairs,
    OpenLane,
    TakeIn,
    TakenIn,
    ValidateOutputs,
)
from orch.workflows.model.round.request import PrepareRound, RoundPrepared
from orch.workflows.model.round.ticket import TicketStatus
from orch.workflows.model.round.trial import Measurement, Pair, Sample, Validated
from orch.workflows.model.usage import Usage

from .round_plans import INCUMBENT, sha, submission

OK = Exit(kind=ExitKind.OK)
DONE = AgentReport(exit=OK, usage=Usage(tokens_in=10, wall_s=1.0), message="done")
STOPPED = AgentReport(exit=Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped"))
MEASUREMENTS = 2
"""The iteration in the key of a measurement."""

ACTIVITY = "__temporal_activity_definition"


@dataclass(frozen=True)
class LaneDesk:
    """What a scripted agent has: it hands over, and asks what became of it."""

    lane: str
    handle: WorkflowHandle[Any, Any]

    async def submit(self, name: str, **facts: Any) -> TicketStatus:
        """Hand over what a name stands for."""
        found = submission(self.lane, name, **facts)
        told: TicketStatus = await self.handle.execute_update(
            "submit", found, id=found.ticket, result_type=TicketStatus
        )
        return told

    async def tickets(self) -> tuple[TicketStatus, ...]:
        """What becomes of everything that was handed over."""
        found: tuple[TicketStatus, ...] = await self.handle.query(
            "tickets", self.lane, result_type=tuple[TicketStatus, ...]
        )
        return found


Agent = Callable[[LaneDesk], Awaitable[None]]
Hook = Callable[[str, Any], Awaitable[Any]]


def gains(*names: str) -> Agent:
    """An agent that hands these over and ends."""

    async def work(desk: LaneDesk) -> None:
        for name in names:
            await desk.submit(name)

    return work


async def idle(desk: LaneDesk) -> None:
    """An agent that finds nothing."""


async def endless(desk: LaneDesk) -> None:
    """An agent that has to be stopped."""
    await asyncio.Event().wait()


@dataclass
class RoundHost:
    """The steps of one round.

    Attributes:
        agents: what the agent of each lane does.
        factors: what commits make of the metric, by what their names stand for; of composed ones the product.
        hook: called with an activity's name and request before it does anything; what it returns is the answer.
        did: what was done, in order.
        running: what is being done.
        most: the most that was done at once, by activity and, of measurements, by device set.
        events: the ledger, as far as it is kept.
        trials: the measurements that have copies.
        left_at_work: what was being done when the run was closed.
    """

    agents: dict[str, Agent]
    factors: dict[str, float] = field(default_factory=dict)
    hook: Hook | None = None
    did: list[tuple[str, Any]] = field(default_factory=list)
    running: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    trials: set[int] = field(default_factory=set)
    left_at_work: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.values = {INCUMBENT: 1.0} | {sha(name): factor for name, factor in self.factors.items()}

    def of(self, name: str) -> list[Any]:
        """The requests of an activity, in order."""
        return [request for done, request in self.did if done == name]

    @contextmanager
    def _doing(self, name: str, request: Any, *more: str) -> Iterator[None]:
        self.did.append((name, request))
        self.running.update([name, *more])
        for one in (name, *more):
            self.most[one] = max(self.most[one], self.running[one])
        try:
            yield
        finally:
            self.running.subtract([name, *more])

    async def _hooked(self, name: str, request: Any) -> Any:
        return await self.hook(name, request) if self.hook else None

    @effect
    async def prepare_round(self, request: PrepareRound) -> RoundPrepared:
        """Find the incumbent."""
        with self._doing("prepare_round", request):
            found = await self._hooked("prepare_round", request)
            return found or RoundPrepared(store="s", incumbent=INCUMBENT, tree=sha("tree"))

    @effect
    async def open_lane(self, request: OpenLane) -> LaneOpened:
        """Have a workspace."""
        with self._doing("open_lane", request):
            return await self._hooked("open_lane", request) or LaneOpened(path="/lane", prompt="go")

    @effect
    async def run_agent(self, request: RunAgent) -> AgentReport:
        """Do what the test says; a cancellation stops it."""
        lane = list(self.agents)[request.attempt.candidate - 1]
        with self._doing("run_agent", request):
            await self._hooked("run_agent", request)
            try:
                handle = activity.client().get_workflow_handle(request.attempt.run)
                await self.agents[lane](LaneDesk(lane, handle))
            except (asyncio.CancelledError, WorkflowUpdateRPCTimeoutOrCancelledError):  # the latter while it submits
                if not kill_requested():
                    raise
                return STOPPED
            return DONE

    @effect
    async def take_in(self, request: TakeIn) -> TakenIn:
        """Watch until it is cancelled."""
        with self._doing("take_in", request):
            await self._hooked("take_in", request)
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
        with self._doing("yield_slot", request):
            pass

    @effect
    async def close_attempt(self, request: CloseAttempt) -> None:
        """Clear a lane or a trial away."""
        with self._doing("close_attempt", request):
            await self._hooked("close_attempt", request)
            if request.attempt.iteration == MEASUREMENTS:
                self.trials.discard(request.attempt.binding)

    @effect
    async def build_trial(self, request: BuildTrial) -> Built:
        """Have both sides."""
        with self._doing("build_trial", request):
            self.trials.add(request.attempt.binding)
            built = await self._hooked("build_trial", request) or Built()
            if built.failed:
                self.trials.discard(request.attempt.binding)
            return built

    @effect
    async def measure_pairs(self, request: MeasurePairs) -> Measurement:
        """Measure what the commits are worth, without noise."""
        with self._doing("measure_pairs", request, request.device):
            found = await self._hooked("measure_pairs", request) or self.measured(request)
            if found.failed:
                self.trials.discard(request.attempt.binding)
            return found

    @effect
    async def validate_outputs(self, request: ValidateOutputs) -> Validated:
        """Find nothing wrong, unless the test says otherwise."""
        with self._doing("validate_outputs", request):
            found = await self._hooked("validate_outputs", request) or Validated()
            self.trials.discard(request.attempt.binding)
            return found

    def measured(self, request: MeasurePairs, **facts: Any) -> Measurement:
        """What its commits are worth."""
        pairs = tuple(
            Pair(
                index=index,
                order="BA" if index % 2 else "AB",
                a=(self._sample(request.base, 7 * index),),
                b=(self._sample(request.candidate, 7 * index + 3),),
            )
            for index in range(request.plan.gates.pairs)
        )
        given = {"base": request.base, "candidate": request.candidate, "device": request.device}
        return Measurement(**{**given, "pairs": pairs, **facts})

    def _sample(self, commit: str, number: int) -> Sample:
        return Sample(value=100 * self.values[commit] * (1 + number % 5 / 1000), exit=OK)

    @effect
    async def compose_step(self, request: ComposeStep) -> Composed:
        """Lay a lane on a head: their factors multiply, unless the test says otherwise."""
        with self._doing("compose_step", request):
            found: Composed | None = await self._hooked("compose_step", request)
            if found:
                return found
            commit = sha(f"{request.head} {request.source}")
            self.values.setdefault(commit, self.values[request.head] * self.values[request.source])
            return Composed(commit=commit, tree=sha(f"tree of {commit}"))

    @effect
    async def promote(self, request: Promote) -> Promotion:
        """Bring it there."""
        with self._doing("promote", request):
            return await self._hooked("promote", request) or Promotion(target=request.target, tree=sha("new"))

    @effect
    async def keep_events(self, request: KeepEvents) -> None:
        """Keep them."""
        with self._doing("keep_events", request):
            self.events += request.events

    @effect
    async def record_round(self, request: RecordRound) -> RoundRecord:
        """Record it."""
        with self._doing("record_round", request):
            found = await self._hooked("record_round", request)
            return found or RoundRecord(path="round-ledger.json", sha256="d" * 64, size=1)

    @effect
    async def close_run(self, request: CloseRun) -> None:
        """Keep the last events, clear everything away; nothing may be at work any more."""
        self.left_at_work = +self.running
        with self._doing("close_run", request):
            await self._hooked("close_run", request)
            self.events += request.events
            self.trials.clear()

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """All of them."""
        return [getattr(self, name) for name in dir(type(self)) if hasattr(getattr(type(self), name), ACTIVITY)]
