"""What people see of a lane: its agent's launches, its tickets, what became of it."""

from __future__ import annotations

from enum import StrEnum

from ..base import Sha, Value
from ..budget import BindingState
from ..view import UsageView
from .composition import StepResult
from .lane import LaneEnd
from .plan import Name
from .ticket import Cause, TicketId, TicketState
from .trial import Evaluation


class LaneState(StrEnum):
    """Where a lane is: without a workspace, with one and no agent at work in it, with one, at rest, or over."""

    WAITING = "waiting"
    OPENING = "opening"
    OPEN = "open"
    WORKING = "working"
    RESTING = "resting"
    ENDED = "ended"


class AttemptView(Value):
    """One launch of a lane's agent: its binding, how it ended, what it used."""

    ordinal: int
    state: BindingState
    exit: str = ""
    outcome: str = ""
    detail: str = ""
    usage: UsageView = UsageView()


class TicketView(Value):
    """One ticket.

    Attributes:
        ticket: its id.
        state: where it is.
        at: when it was submitted, ISO 8601 UTC.
        commit: the incumbent with its files; None when it was never queued.
        files: how many files it changes.
        evaluation: what its measurement showed; None until it is measured.
        cause: why it was rejected.
        detail: the fact behind the cause.
        device: the device set it was taken to last.
        ordinal: the number of its measurement in the round; 0 before.
        wait_s: seconds from its submission until the device set was held for it; None before it is measured.
        held_s: seconds its measurement held the device set.
        put_back: how often it was put back because a device set was busy.
        picked: whether it is the one of its lane that may be composed.
    """

    ticket: TicketId
    state: TicketState
    at: str
    commit: Sha | None = None
    files: int = 0
    evaluation: Evaluation | None = None
    cause: Cause | None = None
    detail: str = ""
    device: str = ""
    ordinal: int = 0
    wait_s: float | None = None
    held_s: float | None = None
    put_back: int = 0
    picked: bool = False


class LaneView(Value):
    """One lane: who worked at which entry, what came of it.

    Attributes:
        id: the lane.
        entry: the entry of the search plan.
        plane: the plane that the entry changes.
        stage: the bottleneck it attacks; empty when the plan names none.
        agent: the agent's spec.
        state: where it is.
        deadline: absolute Unix time; None before the lane began.
        attempts: launches so far.
        max_attempts: the most there may be.
        tickets: what it submitted, in order.
        max_submissions: how many distinct manifests it may submit.
        result: what composition made of it; None before, or when it had no ticket to compose.
        kept: whether it is in the new incumbent.
        resting_until: Unix time at which its provider is asked again; None while it does not rest.
        end: why it stopped; None while it goes on.
        detail: the fact behind the end, or the rest.
        usage: what its attempts used.
    """

    id: Name
    entry: Name
    plane: Name
    stage: str = ""
    agent: str
    state: LaneState = LaneState.WAITING
    deadline: float | None = None
    attempts: tuple[AttemptView, ...] = ()
    max_attempts: int
    tickets: tuple[TicketView, ...] = ()
    max_submissions: int
    result: StepResult | None = None
    kept: bool = False
    resting_until: float | None = None
    end: LaneEnd | None = None
    detail: str = ""
    usage: UsageView = UsageView()

    @property
    def best(self) -> TicketView | None:
        """The passing ticket with the largest gain; the first of equals."""
        passing = [one for one in self.tickets if one.evaluation and one.evaluation.passed]
        return max(passing, key=_gain, default=None)


def _gain(ticket: TicketView) -> float:
    return ticket.evaluation.gain or 0.0 if ticket.evaluation else 0.0
