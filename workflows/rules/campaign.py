"""A campaign's record: what a closed round says of its entries, and where they stand by all that was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.base import Sha
from ..model.round.campaign import Revision
from ..model.round.closing import LaneClosed, RoundClosed, TicketVerdict
from ..model.round.composition import Rerun
from ..model.round.lane import LaneEnd
from ..model.round.plan import EntryStatus, LanePlan, RoundPlan
from ..model.round.trial import Judgement

_NOTHING_LEARNT = frozenset({Judgement.UNEVALUABLE, Judgement.INCONCLUSIVE})
"""What a measurement may show that speaks neither for a change nor against it."""

_CUT_SHORT = frozenset({None, LaneEnd.CANCELLED})
"""A lane that did not come to its own end: it might have found something yet."""

_UNCOMPOSED = "the round ended before it was composed"

Standing = tuple[EntryStatus, str, str, float | None, str]
"""Status, why, ticket, gain, condition."""


def revisions(plan: RoundPlan, run: str, closed: RoundClosed, at: str) -> tuple[Revision, ...]:
    """A row for each lane, in the order of the plan; `at` is ISO 8601 UTC.

    A lane in the new incumbent is kept, one without a passing ticket rejected. One that passed alone and is not in it
    is planned again. One of which nothing was measured that says anything stays planned: nothing is learnt of a
    benchmark without a value, of pairs that the deadline cut short, or of a lane that was cancelled at its work.
    """
    known = {lane.lane: lane for lane in closed.lanes}
    return tuple(
        _row(plan, run, at, lane, _standing(plan, lane, known.get(lane.id, LaneClosed(lane=lane.id)), closed))
        for lane in plan.lanes
    )


def superseded(rows: Iterable[Revision], incumbent: Sha) -> tuple[Revision, ...]:
    """The rows of a round that another one overtook: its own incumbent was not taken, so nothing stands by it.

    What it kept is planned again, and what passed and is not in it has the other round's incumbent for its condition.
    """
    condition = f"the incumbent is {incumbent[:12]} since another round"
    return tuple(
        row.model_copy(
            update={
                "status": EntryStatus.PLANNED,
                "why": f"another round had advanced the incumbent meanwhile; {row.why}",
                "condition": condition,
            }
        )
        if row.ticket and row.status is not EntryStatus.REJECTED
        else row
        for row in rows
    )


def last_rows(rows: Iterable[Revision]) -> dict[str, Revision]:
    """The newest row of each entry."""
    return {row.entry: row for row in rows}


def tried(rows: Iterable[Revision], entry: str) -> tuple[str, ...]:
    """The conditions under which an entry was rejected."""
    own = (row for row in rows if row.entry == entry and row.status is EntryStatus.REJECTED)
    return tuple(dict.fromkeys(row.condition for row in own if row.condition))


def _standing(plan: RoundPlan, lane: LanePlan, facts: LaneClosed, closed: RoundClosed) -> Standing:
    if facts.pick is None:
        return _without_pick(lane, facts)
    ticket, gain = facts.pick.ticket, facts.pick.evaluation.gain
    if lane.id in closed.composed:
        return EntryStatus.KEPT, f"composed: {facts.pick.evaluation.why}", ticket, gain, lane.condition
    alone = next((rerun for rerun in closed.reruns if rerun.lanes == (lane.id,)), None)
    if alone is not None and not alone.evaluation.passed:
        return _not_again(lane, ticket, gain, alone)
    why = f"passed alone, but {_lost(facts, closed)}"
    condition = lane.condition if closed.incumbent is None else _on(closed.incumbent, plan.id)
    return EntryStatus.PLANNED, why, ticket, gain, condition


def _not_again(lane: LanePlan, ticket: str, gain: float | None, rerun: Rerun) -> Standing:
    """It passed once, and did not when it alone was measured once more."""
    learnt = rerun.evaluation.verdict not in _NOTHING_LEARNT
    status = EntryStatus.REJECTED if learnt else EntryStatus.PLANNED
    return status, f"passed once, but not again: {rerun.evaluation.why}", ticket, gain, lane.condition


def _lost(facts: LaneClosed, closed: RoundClosed) -> str:
    if facts.step is not None and facts.lane not in _measured_again(closed.reruns):
        return f"not on the head of the lanes before it: {facts.step.evaluation.why}"
    composed = next((rerun for rerun in closed.reruns if facts.lane in rerun.lanes), None)
    if composed is not None:
        return f"the composed head did not pass again: {composed.evaluation.why}"
    return _UNCOMPOSED


def _measured_again(reruns: Iterable[Rerun]) -> set[str]:
    return {lane for rerun in reruns for lane in rerun.lanes}


def _without_pick(lane: LanePlan, facts: LaneClosed) -> Standing:
    passed = next((verdict for verdict in facts.measured if verdict.evaluation.passed), None)
    if passed is not None:
        why = f"passed alone, but {_UNCOMPOSED}"
        return EntryStatus.PLANNED, why, passed.ticket, passed.evaluation.gain, lane.condition
    learnt = [verdict for verdict in facts.measured if verdict.evaluation.verdict not in _NOTHING_LEARNT]
    if learnt and not facts.pending and facts.end not in _CUT_SHORT:
        best = max(learnt, key=_gain)
        count = "its ticket" if len(facts.measured) == 1 else f"none of its {len(facts.measured)} tickets"
        verb = "did not pass" if len(facts.measured) == 1 else "passed"
        why = f"{count} {verb}: {_said(best)}"
        return EntryStatus.REJECTED, why.rstrip(", "), best.ticket, best.evaluation.gain, lane.condition
    return EntryStatus.PLANNED, f"nothing was learnt: {_unmeasured(facts)}", "", None, lane.condition


def _said(verdict: TicketVerdict) -> str:
    return f"{verdict.evaluation.verdict.value.replace('_', ' ')}, {verdict.evaluation.why}"


def _gain(verdict: TicketVerdict) -> float:
    return float("-inf") if verdict.evaluation.gain is None else verdict.evaluation.gain


def _unmeasured(facts: LaneClosed) -> str:
    ended = f"the lane ended ({facts.end.value.replace('_', ' ')})" if facts.end else "the lane never began"
    if facts.pending:
        return f"{facts.pending} of its tickets were never measured; {ended}"
    if facts.measured and facts.end in _CUT_SHORT:
        return f"its lane was cut short; the last ticket: {_said(facts.measured[-1])}"
    if facts.measured:
        return f"no measurement showed anything ({_said(facts.measured[-1])}); {ended}"
    if facts.rejected:
        causes = ", ".join(f"{cause.value} {count}" for cause, count in sorted(Counter(facts.rejected).items()))
        return f"no ticket could be measured ({causes}); {ended}"
    return f"nothing was submitted; {ended}"


def _on(incumbent: Sha, round_: str) -> str:
    return f"the incumbent is {incumbent[:12]} since round {round_}"


def _row(plan: RoundPlan, run: str, at: str, lane: LanePlan, standing: Standing) -> Revision:
    status, why, ticket, gain, condition = standing
    return Revision(
        campaign=plan.campaign,
        round=plan.id,
        run=run,
        entry=lane.entry.id,
        lane=lane.id,
        status=status,
        why=why,
        ticket=ticket,
        gain=gain,
        condition=condition,
        at=at,
    )
