"""Composition: the lanes' best tickets laid on one another, each step measured, the head measured again."""

from __future__ import annotations

from enum import StrEnum

from ..base import Sha, Value
from .plan import Name
from .ticket import TicketId
from .trial import Evaluation


class Pick(Value):
    """The one ticket of a lane that may be composed: the passing one with the largest gain."""

    lane: Name
    ticket: TicketId
    commit: Sha
    evaluation: Evaluation


class StepResult(StrEnum):
    """What became of a lane in composition."""

    FIRST = "first"
    ADDED = "added"
    SKIPPED = "skipped"


class Step(Value):
    """One lane laid on the head before it.

    Attributes:
        lane: which.
        ticket: its ticket.
        base: the head before.
        commit: the head with the lane's files; it is the head from here on unless the step was skipped.
        result: what became of it.
        evaluation: against `base`; of the first lane its own, against the incumbent.
        interaction: its gain here by its gain alone, in the metric's unit: near 1 it is orthogonal; None when unknown.
        interaction_log: the same of log ratios; None where the metric is not positive.
    """

    lane: Name
    ticket: TicketId
    base: Sha
    commit: Sha
    result: StepResult
    evaluation: Evaluation
    interaction: float | None = None
    interaction_log: float | None = None


class Rerun(Value):
    """A head measured once more against the incumbent, from fresh checkouts.

    Attributes:
        commit: what was measured.
        lanes: the lanes that are in it, in order.
        fallback: whether it is the best single lane after the composed head had failed.
        evaluation: what it showed; this gain is unbiased, the tickets' are not.
    """

    commit: Sha
    lanes: tuple[Name, ...]
    fallback: bool = False
    evaluation: Evaluation
