"""Which tickets are composed, in which order, and what a measured step or rerun means (R7 of the source design)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.round.composition import Pick, Rerun, StepResult
from ..model.round.plan import Composition
from ..model.round.trial import Evaluation


def picks(measured: Iterable[Pick]) -> tuple[Pick, ...]:
    """At most one ticket of each lane, the passing one with the largest gain; largest gain first, then by lane.

    Of equal gains in a lane the ticket with the smaller id is taken, so that the order of measuring decides nothing.
    """
    best: dict[str, Pick] = {}
    for pick in sorted((pick for pick in measured if pick.evaluation.passed), key=_order):
        best.setdefault(pick.lane, pick)
    return tuple(sorted(best.values(), key=_order))


def result_of(evaluation: Evaluation) -> StepResult:
    """What becomes of a lane that was laid on the head and measured against it."""
    return StepResult.ADDED if evaluation.passed else StepResult.SKIPPED


def fallback(order: Sequence[Pick], reruns: Sequence[Rerun], policy: Composition) -> Pick | None:
    """The single lane that is rerun after the composed head failed: the best one, once, unless the plan is strict.

    None when there is none, when it was tried already, or when the head that failed was this very lane alone.
    """
    if policy == "strict" or len(reruns) != 1 or reruns[0].evaluation.passed or not order:
        return None
    return None if reruns[0].lanes == (order[0].lane,) else order[0]


def _order(pick: Pick) -> tuple[float, str, str]:
    return -(pick.evaluation.gain or 0.0), pick.lane, pick.ticket
