"""The state that a round's decisions read: a fold of its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce, singledispatchmethod

from .lane_state import LaneState
from .model.base import Sha
from .model.event import Event, RunEnded
from .model.round.closing import LaneClosed, RoundClosed, TicketVerdict
from .model.round.composition import Pick, Rerun, Step, StepResult
from .model.round.event import (
    BindingCancelled,
    BindingClaimed,
    BindingReserved,
    BindingSettled,
    DeviceTurned,
    GuardMeasured,
    HeadRerun,
    LaneEnded,
    LaneReady,
    LaneStarted,
    PicksMade,
    RoundDecided,
    RoundReady,
    RoundStarted,
    StepComposed,
    TicketMeasured,
    TicketPutBack,
    TicketQueued,
    TicketRejected,
    TicketTaken,
)
from .model.round.plan import RoundPlan
from .model.round.ticket import Cause, Submission, TicketState, TicketStatus
from .model.round.trial import Evaluation, Noise
from .model.usage import Usage

LaneEvent = LaneStarted | LaneReady | BindingReserved | BindingClaimed | BindingSettled | BindingCancelled | LaneEnded
"""What a lane's state is a fold of."""


@dataclass
class Ticket:
    """One ticket, from its arrival to its verdict.

    It is `measuring` once it is taken from the queue; `turn` tells whether a device set has come to it since. For its
    lane it waits until then.
    """

    submission: Submission
    state: TicketState = TicketState.QUEUED
    evaluation: Evaluation | None = None
    cause: Cause | None = None
    detail: str = ""
    turn: bool = False

    @property
    def status(self) -> TicketStatus:
        """What its lane may know."""
        found = self.evaluation
        return TicketStatus(
            ticket=self.submission.ticket,
            state=TicketState.QUEUED if self.state is TicketState.MEASURING and not self.turn else self.state,
            verdict=found.verdict.value if found else "",
            gain=found.gain if found else None,
            gain_unit=found.gain_unit if found else None,
            cause=self.cause,
            detail=found.why if found else self.detail,
        )


@dataclass
class RoundState:
    """What a round knows; changed only by `apply`.

    Attributes:
        incumbent: the incumbent's (commit, tree).
        baseline: the user's tree as it was, where the result goes into it.
        noise: by device set: of all A/A pairs that passed so far.
        lanes: by lane.
        tickets: by ticket, in order of arrival.
        last: the lane that was served last.
        order: the picks, in the order of composition.
        steps: composition so far.
        trees: of composed commits.
        reruns: of heads.
        taking: whether submissions are taken.
        ended: whether the last word is in the ledger: nothing follows it.
    """

    plan: RoundPlan | None = None
    started_at: float = 0.0
    store: str = ""
    sandbox: bool = True
    incumbent: tuple[Sha, Sha] | None = None
    baseline: Sha | None = None
    noise: dict[str, Noise] = field(default_factory=dict)
    lanes: dict[str, LaneState] = field(default_factory=dict)
    tickets: dict[str, Ticket] = field(default_factory=dict)
    last: str | None = None
    order: tuple[Pick, ...] = ()
    steps: list[Step] = field(default_factory=list)
    trees: dict[Sha, Sha] = field(default_factory=dict)
    reruns: list[Rerun] = field(default_factory=list)
    decided: RoundDecided | None = None
    taking: bool = False
    ended: bool = False

    @singledispatchmethod
    def apply(self, event: Event) -> None:
        """Fold one event in; events that decide nothing change nothing."""

    @apply.register
    def _started(self, event: RoundStarted) -> None:
        self.plan = event.plan
        self.started_at = event.time
        digest = event.plan.digest
        self.lanes = {lane.id: LaneState(lane, digest) for lane in event.plan.lanes}

    @apply.register
    def _ready(self, event: RoundReady) -> None:
        self.store, self.sandbox, self.baseline = event.store, event.sandbox, event.baseline
        self.incumbent = (event.incumbent, event.tree)

    @apply.register
    def _guard(self, event: GuardMeasured) -> None:
        if event.noise is not None:
            self.noise[event.measurement.device] = event.noise

    @apply.register(LaneStarted)
    @apply.register(LaneReady)
    @apply.register(BindingReserved)
    @apply.register(BindingClaimed)
    @apply.register(BindingSettled)
    @apply.register(BindingCancelled)
    @apply.register(LaneEnded)
    def _lane(self, event: LaneEvent) -> None:
        self.taking = True
        self.lanes[event.lane].apply(event)

    @apply.register
    def _queued(self, event: TicketQueued) -> None:
        self.tickets[event.submission.ticket] = Ticket(event.submission)

    @apply.register
    def _rejected(self, event: TicketRejected) -> None:
        if event.submission is not None:
            self.tickets[event.ticket] = Ticket(event.submission)
        ticket = self.tickets[event.ticket]
        ticket.state, ticket.cause, ticket.detail = TicketState.REJECTED, event.cause, event.detail

    @apply.register
    def _taken(self, event: TicketTaken) -> None:
        ticket = self.tickets[event.ticket]
        ticket.state, ticket.turn, self.last = TicketState.MEASURING, False, ticket.submission.lane

    @apply.register
    def _turned(self, event: DeviceTurned) -> None:
        if event.ticket is not None:
            self.tickets[event.ticket].turn = True

    @apply.register
    def _put_back(self, event: TicketPutBack) -> None:
        self.tickets[event.ticket].state = TicketState.QUEUED

    @apply.register
    def _measured(self, event: TicketMeasured) -> None:
        ticket = self.tickets[event.ticket]
        ticket.state, ticket.evaluation = TicketState.MEASURED, event.evaluation

    @apply.register
    def _picks(self, event: PicksMade) -> None:
        self.taking, self.order = False, event.picks

    @apply.register
    def _step(self, event: StepComposed) -> None:
        self.steps.append(event.step)
        if event.tree is not None:
            self.trees[event.step.commit] = event.tree

    @apply.register
    def _rerun(self, event: HeadRerun) -> None:
        self.reruns.append(event.rerun)

    @apply.register
    def _decided(self, event: RoundDecided) -> None:
        self.decided = event

    @apply.register
    def _over(self, event: RunEnded) -> None:  # noqa: ARG002 - that it came is enough
        self.taking, self.ended = False, True

    @property
    def begun(self) -> bool:
        """Whether any lane began, and so an agent may have."""
        return any(lane.attempt is not None for lane in self.lanes.values())

    @property
    def queued(self) -> list[tuple[str, str]]:
        """(lane, ticket) of what waits, in order of arrival."""
        waiting = (ticket for ticket in self.tickets.values() if ticket.state is TicketState.QUEUED)
        return [(ticket.submission.lane, ticket.submission.ticket) for ticket in waiting]

    @property
    def passed(self) -> Iterator[Pick]:
        """Every ticket that was measured, as it might be picked."""
        for ticket in self.tickets.values():
            found = ticket.submission
            if ticket.evaluation is not None and found.commit is not None:
                yield Pick(lane=found.lane, ticket=found.ticket, commit=found.commit, evaluation=ticket.evaluation)

    @property
    def head(self) -> tuple[Sha, tuple[str, ...], tuple[Sha, ...]]:
        """The composed head, its lanes and its chain of commits; the incumbent alone before the first step."""
        kept = [step for step in self.steps if step.result is not StepResult.SKIPPED]
        head = kept[-1].commit if kept else self.known_incumbent[0]
        return head, tuple(step.lane for step in kept), tuple(step.commit for step in kept)

    @property
    def closed(self) -> RoundClosed:
        """What the round came to, lane by lane."""
        decided, steps = self.decided, {step.lane: step for step in self.steps}
        best = {pick.lane: pick for pick in self.order}
        return RoundClosed(
            lanes=tuple(self._lane_closed(lane, best.get(lane), steps.get(lane)) for lane in self.lanes),
            reruns=tuple(self.reruns),
            composed=decided.lanes if decided else (),
            incumbent=decided.incumbent if decided else None,
        )

    def _lane_closed(self, lane: str, pick: Pick | None, step: Step | None) -> LaneClosed:
        own = [ticket for ticket in self.tickets.values() if ticket.submission.lane == lane]
        never = {Cause.ROUND_OVER, Cause.HOST_FAULT}
        late = [ticket for ticket in own if ticket.cause in never and ticket.submission.refused is None]
        return LaneClosed(
            lane=lane,
            end=self.lanes[lane].end,
            measured=tuple(
                TicketVerdict(ticket=ticket.submission.ticket, evaluation=ticket.evaluation)
                for ticket in own
                if ticket.evaluation is not None
            ),
            rejected=tuple(ticket.cause for ticket in own if ticket.cause is not None and ticket not in late),
            pending=len(late),
            pick=pick,
            step=step,
        )

    @property
    def usage(self) -> Usage:
        """Everything the lanes' agents used."""
        return reduce(lambda a, b: a + b, (lane.usage for lane in self.lanes.values()), Usage())

    @property
    def known_incumbent(self) -> tuple[Sha, Sha]:
        """The incumbent's (commit, tree); a bug before the round was ready."""
        if self.incumbent is None:
            raise LookupError("the round has no incumbent yet")
        return self.incumbent

    @property
    def known_plan(self) -> RoundPlan:
        """The frozen plan; a bug before the round began."""
        if self.plan is None:
            raise LookupError("the round has no plan yet")
        return self.plan

    @property
    def deadline(self) -> float:
        """The round's absolute deadline in Unix time."""
        return self.started_at + self.known_plan.deadline_s

    def lane_deadline(self, lane: str) -> float:
        """A lane's absolute deadline: its own, and never after the round's."""
        found = self.known_plan.lane(lane)
        own = found.deadline_s if found else None
        return self.deadline if own is None else min(self.deadline, self.started_at + own)
