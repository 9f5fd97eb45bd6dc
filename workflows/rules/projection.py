"""The projection: what people see of a run, read from its ledger; any prefix of one is a live run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..model.attempt import AttemptKey
from ..model.candidate import Failure
from ..model.event import (
    AttemptReplaced,
    AttemptResumed,
    AttemptStarted,
    AttemptWaiting,
    BaselineMeasured,
    BaselineTaken,
    CandidateMeasured,
    Event,
    GateMeasured,
    HeadReviewed,
    IterationDecided,
    IterationStarted,
    NoteAdded,
    RunEnded,
    RunPromoted,
    RunStarted,
    SealDecided,
    SealRequested,
)
from ..model.ranking import Ranking
from ..model.reason import CandidateReason, Reason, RunReason
from ..model.review import Review
from ..model.usage import Usage
from ..model.verdict import Verdict
from ..model.view import (
    CandidateStatus,
    CandidateView,
    IterationView,
    PromotedView,
    RunStatus,
    RunView,
    UsageView,
)

Kind = TypeVar("Kind")

UNDER_WAY = (AttemptStarted, AttemptWaiting, AttemptResumed, AttemptReplaced)
"""The events of an attempt that has begun and not ended."""


@dataclass(frozen=True)
class _Run:
    """What every candidate's line needs of its run: the agents, the ladder's length, whether it has ended."""

    agents: tuple[str, ...]
    rungs_total: int
    ended: bool


def project(events: Sequence[Event]) -> RunView:
    """Read a run's view from its events, in ledger order; without any it is a nameless running view."""
    started = _last(events, RunStarted)
    baseline = _last(events, BaselineTaken)
    measured = _last(events, BaselineMeasured)
    head = _last(events, IterationDecided) or baseline
    ended = _last(events, RunEnded)
    status, reason = _status(events)
    return RunView(
        id=started.run if started else "",
        kind=started.kind if started else "goal",
        status=status,
        reason=reason,
        goal=started.goal if started else "",
        repo=started.repo if started else "",
        started_at=started.at if started else "",
        ended_at=ended.at if ended else None,
        baseline=baseline.commit if baseline else None,
        baseline_dirty=bool(baseline and baseline.dirty),
        baseline_rungs_passed=measured.verdict.rungs_passed if measured else None,
        head=head.commit if head else None,
        contract_digest=baseline.contract_digest if baseline else None,
        rungs=tuple(rung.name for rung in baseline.contract.rungs) if baseline else (),
        protected=baseline.contract.protected if baseline else (),
        sandbox=baseline.sandbox if baseline else None,
        warnings=(*(baseline.warnings if baseline else ()), *_blind(events), *_touched_by_setup(events)),
        notes=tuple(event.note.text for event in _all(events, NoteAdded)),
        iterations=_iterations(events),
        promote=str(started.promote) if started else "",
        promoted=_promoted(_last(events, RunPromoted)),
        usage=UsageView.of(_total(events)),
    )


def _all(events: Sequence[Event], kind: type[Kind]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


def _last(events: Sequence[Event], kind: type[Kind]) -> Kind | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)


def _status(events: Sequence[Event]) -> tuple[RunStatus, Reason[RunReason] | None]:
    if ended := _last(events, RunEnded):
        return RunStatus(ended.status), ended.reason
    if len(_all(events, SealRequested)) > len(_all(events, SealDecided)):
        return RunStatus.WAITING, Reason(code=RunReason.SEAL_WAITING)
    return RunStatus.RUNNING, None


def _promoted(event: RunPromoted | None) -> PromotedView | None:
    if event is None:
        return None
    it = event.promotion
    return PromotedView(tree=it.tree, mode=it.target.mode, branch=it.target.branch, paths=it.paths, refused=it.refused)


def _touched_by_setup(events: Sequence[Event]) -> tuple[str, ...]:
    """Warn where set-up changes tracked files: what it leaves there is no candidate's change."""
    snapshots = [event.candidate.snapshot for event in _all(events, CandidateMeasured)]
    names = list(dict.fromkeys(name for one in snapshots if one for name in one.setup_changed))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (f"set-up changes tracked files: {', '.join(names[:3])}{more}; no candidate's change",) if names else ()


def _blind(events: Sequence[Event]) -> tuple[str, ...]:
    """Warn where a budget is set in a unit that some agent does not report: it cannot hold there."""
    started, measured = _last(events, RunStarted), _all(events, CandidateMeasured)
    if started is None:
        return ()
    ran = [event.candidate for event in measured if event.candidate.launches]
    units = {"tokens": started.caps.tokens, "money": started.caps.usd}
    silent = {
        "tokens": [candidate.agent for candidate in ran if candidate.usage.tokens is None],
        "money": [candidate.agent for candidate in ran if candidate.usage.usd is None],
    }
    return tuple(
        f"{silent[unit][0].partition(':')[0]} reports no {unit}: the budget in {unit} cannot hold, time and turns can"
        for unit, cap in units.items()
        if cap is not None and silent[unit]
    )


def _total(events: Sequence[Event]) -> Usage:
    """Every measured attempt and every review, losers and lost bindings included."""
    attempts = [event.candidate.usage for event in _all(events, CandidateMeasured)]
    attempts += [event.lost.usage for event in _all(events, AttemptReplaced)]
    reviews = [event.review.usage for event in _all(events, HeadReviewed)]
    return sum([*attempts, *reviews], Usage())


def _iterations(events: Sequence[Event]) -> tuple[IterationView, ...]:
    started, baseline = _last(events, RunStarted), _last(events, BaselineTaken)
    run = _Run(
        agents=started.agents if started else (),
        rungs_total=len(baseline.contract.rungs) if baseline else 0,
        ended=_last(events, RunEnded) is not None,
    )
    parts: dict[int, list[Event]] = {}
    for event in events:
        parts.setdefault(_ordinal(event), []).append(event)
    return tuple(_iteration(parts[start.ordinal], start, run) for start in _all(events, IterationStarted))


def _ordinal(event: Event) -> int:
    """The iteration an event belongs to; 0 for those of the run itself."""
    if isinstance(event, IterationStarted | IterationDecided | GateMeasured | HeadReviewed):
        return event.ordinal
    key = _key(event)
    return key.iteration if key else 0


def _key(event: Event) -> AttemptKey | None:
    if isinstance(event, CandidateMeasured):
        return event.candidate.attempt
    return event.attempt if isinstance(event, UNDER_WAY) else None


def _iteration(events: Sequence[Event], start: IterationStarted, run: _Run) -> IterationView:
    decided = _last(events, IterationDecided)
    gate = _last(events, GateMeasured)
    reviewed = _last(events, HeadReviewed)
    latest = {key.candidate: event for event in events if (key := _key(event))}
    indices = [key.candidate for key in start.attempts]
    ranking = decided.ranking if decided else None
    return IterationView(
        ordinal=start.ordinal,
        baseline=start.commit,
        winner=ranking.winner if ranking else None,
        decided_by=ranking.decided_by if ranking else "",
        candidates=tuple(
            _candidate(index, latest.get(index), ranking, run).model_copy(
                update={"rank": _rank(ranking, index), "replaced": _replaced(events, index)}
            )
            for index in indices
        ),
        gate=_gate(gate.verdict) if gate else "",
        review=_review(reviewed.review) if reviewed else "",
    )


def _gate(verdict: Verdict) -> str:
    if verdict.passed:
        return "passed"
    if verdict.tampered:
        return "protected paths changed while it ran"
    if verdict.setup is not None and not verdict.setup.ok:
        return f"set-up: {verdict.setup}"
    return next((f"{rung.name}: {rung.exit}" for rung in verdict.failing), "incomplete")


def _review(review: Review) -> str:
    word = "approved" if review.approved else "vetoed"
    return f"{word}: {review.comment}" if review.comment else word


def _candidate(index: int, latest: Event | None, ranking: Ranking | None, run: _Run) -> CandidateView:
    """A candidate's line: its latest event tells where it is (a lost binding may be followed by another)."""
    if isinstance(latest, CandidateMeasured):
        return CandidateView.of(latest.candidate, _ranked(ranking, index), run.rungs_total)
    running, resting = isinstance(latest, UNDER_WAY), isinstance(latest, AttemptWaiting)
    status = CandidateStatus.RESTING if resting else CandidateStatus.RUNNING if running else CandidateStatus.QUEUED
    failure = Failure.CANCELLED if running else Failure.NOT_STARTED
    return CandidateView(
        index=index,
        agent=latest.agent if isinstance(latest, UNDER_WAY) else _agent(index, run),
        outcome=latest.outcome.kind.value if isinstance(latest, AttemptWaiting) else "",
        outcome_detail=latest.outcome.detail if isinstance(latest, AttemptWaiting) else "",
        resting_until=latest.until if isinstance(latest, AttemptWaiting) else None,
        status=CandidateStatus.FAILED if run.ended else status,
        rungs_total=run.rungs_total,
        reason=_ranked(ranking, index),
        failure=failure.value if run.ended else "",
    )


def _replaced(events: Sequence[Event], index: int) -> tuple[str, ...]:
    """The attempts of a candidate whose hosts were lost, with those hosts."""
    gone = [event.lost for event in _all(events, AttemptReplaced) if event.attempt.candidate == index]
    return tuple(f"{lost.attempt.name} was lost with its host {lost.host}" for lost in gone)


def _agent(index: int, run: _Run) -> str:
    return run.agents[(index - 1) % len(run.agents)] if run.agents else ""


def _rank(ranking: Ranking | None, index: int) -> int | None:
    order = [standing.index for standing in ranking.order if standing.index] if ranking else []
    return order.index(index) + 1 if index in order else None


def _ranked(ranking: Ranking | None, index: int) -> Reason[CandidateReason] | None:
    order = ranking.order if ranking else ()
    return next((standing.reason for standing in order if standing.index == index), None)
