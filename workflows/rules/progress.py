"""What a run does after an iteration: done by two keys, stuck, capped, or once more."""

from __future__ import annotations

from ..model.budget import Caps
from ..model.progress import Next, NextKind
from ..model.reason import Datum, Reason, RunReason


def decide(  # noqa: PLR0913 - every fact that may end a run, and each by its name
    *,
    gate_passed: bool,
    vetoed: bool | None,
    stuck: Reason[RunReason] | None,
    iterations: int,
    caps: Caps,
    budget_reason: RunReason | None,
    deadline_passed: bool,
) -> Next:
    """Decide in this order: both keys turned, stuck, iteration cap, budget, deadline, else continue.

    Args:
        gate_passed: the frozen ladder passed on the head's tree, measured afresh.
        vetoed: the reviewer's key; None when the run has no reviewer. A missing answer is a veto.
        stuck: why the run gets nowhere, if it does.
        iterations: how many are finished.
        caps: what the run may use, extensions included.
        budget_reason: the cap that is used up, if one is.
        deadline_passed: whether the run's absolute deadline is behind it.
    """
    if gate_passed and not vetoed:
        return Next(kind=NextKind.DONE, reason=Reason(code=RunReason.DONE))
    if stuck is not None:
        return Next(kind=NextKind.END, reason=stuck)
    if iterations >= caps.max_iterations:
        return _end(RunReason.ITERATION_CAP, iterations=iterations, cap=caps.max_iterations)
    if budget_reason is not None:
        return _end(budget_reason, cap=caps.usd if budget_reason is RunReason.BUDGET_USD else caps.tokens)
    if deadline_passed:
        return _end(RunReason.DEADLINE, deadline_s=caps.deadline_s)
    return Next(kind=NextKind.CONTINUE)


def _end(code: RunReason, **data: Datum) -> Next:
    return Next(kind=NextKind.END, reason=Reason(code=code, data=data))
