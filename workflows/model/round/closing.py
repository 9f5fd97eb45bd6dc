"""A round that is over, lane by lane: what the campaign's record is made of."""

from __future__ import annotations

from ..base import Sha, Value
from .composition import Pick, Rerun, Step
from .lane import LaneEnd
from .plan import Name
from .ticket import Cause, TicketId
from .trial import Evaluation


class TicketVerdict(Value):
    """A ticket that was measured."""

    ticket: TicketId
    evaluation: Evaluation


class LaneClosed(Value):
    """What a lane came to.

    Attributes:
        lane: which.
        end: why its agents stopped; None when they never began.
        measured: its tickets with a verdict, in the order of their measurement.
        rejected: why tickets of it were rejected, one cause for each.
        pending: how many of its tickets were never measured.
        pick: its best passing ticket.
        step: what became of that in composition.
    """

    lane: Name
    end: LaneEnd | None = None
    measured: tuple[TicketVerdict, ...] = ()
    rejected: tuple[Cause, ...] = ()
    pending: int = 0
    pick: Pick | None = None
    step: Step | None = None


class RoundClosed(Value):
    """What a round came to.

    Attributes:
        lanes: one for each lane of the plan.
        reruns: the heads that were measured once more, in order.
        composed: the lanes that are in the new incumbent; empty when the old one stays.
        incumbent: the new incumbent.
    """

    lanes: tuple[LaneClosed, ...]
    reruns: tuple[Rerun, ...] = ()
    composed: tuple[Name, ...] = ()
    incumbent: Sha | None = None
