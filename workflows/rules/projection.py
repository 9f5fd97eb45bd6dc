"""The projection: what people see of a run, read from its ledger; any prefix of one is a live run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..model.attempt import AttemptKey
from ..model.candidate import Candidate, Failure
from ..model.event import (
    AttemptStarted,
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
    RungView,
    RunStatus,
    RunView,
    UsageView,
)

Kind = TypeVar("Kind")


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
        warnings=baseline.warnings if baseline else (),
        notes=tuple(event.note.text for event in _all(events, NoteAdded)),
        iterations=_iterations(events),
        promote=str(started.promote) if started else "",
        promoted=_promoted(_last(events, RunPromoted)),
        usage=_usage(_total(events)),
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


def _total(events: Sequence[Event]) -> Usage:
    """Every measured attempt and every review, losers and lost bindings included."""
    attempts = [event.candidate.usage for event in _all(events, CandidateMeasured)]
    reviews = [event.review.usage for event in _all(events, HeadReviewed)]
    return sum([*attempts, *reviews], Usage())


def _usage(usage: Usage) -> UsageView:
    return UsageView(tokens=usage.tokens, usd=usage.usd, wall_s=usage.wall_s)


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
    return event.attempt if isinstance(event, AttemptStarted) else None


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
            _candidate(index, latest.get(index), ranking, run).model_copy(update={"rank": _rank(ranking, index)})
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
        return _measured(latest.candidate, _ranked(ranking, index), run)
    running = isinstance(latest, AttemptStarted)
    status = CandidateStatus.RUNNING if running else CandidateStatus.QUEUED
    failure = Failure.CANCELLED if running else Failure.NOT_STARTED
    return CandidateView(
        index=index,
        agent=latest.agent if isinstance(latest, AttemptStarted) else _agent(index, run),
        status=CandidateStatus.FAILED if run.ended else status,
        rungs_total=run.rungs_total,
        reason=_ranked(ranking, index),
        failure=failure.value if run.ended else "",
    )


def _agent(index: int, run: _Run) -> str:
    return run.agents[(index - 1) % len(run.agents)] if run.agents else ""


def _rank(ranking: Ranking | None, index: int) -> int | None:
    order = [standing.index for standing in ranking.order if standing.index] if ranking else []
    return order.index(index) + 1 if index in order else None


def _ranked(ranking: Ranking | None, index: int) -> Reason[CandidateReason] | None:
    order = ranking.order if ranking else ()
    return next((standing.reason for standing in order if standing.index == index), None)


def _measured(candidate: Candidate, reason: Reason[CandidateReason] | None, run: _Run) -> CandidateView:
    verdict, snapshot = candidate.verdict, candidate.snapshot
    rungs = verdict.rungs if verdict else ()
    return CandidateView(
        index=candidate.index,
        agent=candidate.agent,
        status=_candidate_status(candidate),
        rungs_passed=verdict.rungs_passed if verdict else None,
        rungs_total=verdict.rungs_total if verdict else run.rungs_total,
        rungs=tuple(RungView(name=rung.name, result=str(rung.exit), wall_s=rung.wall_s) for rung in rungs),
        changed=candidate.changed if snapshot else None,
        paths=snapshot.paths if snapshot else (),
        restored=snapshot.restored if snapshot else (),
        tree=candidate.tree,
        commit=snapshot.commit if snapshot else None,
        agent_exit=str(candidate.exit) if candidate.exit else "",
        usage=_usage(candidate.usage),
        message=candidate.message,
        reason=reason,
        failure=_failure(candidate),
    )


def _candidate_status(candidate: Candidate) -> CandidateStatus:
    if candidate.verdict is None:
        return CandidateStatus.FAILED
    if candidate.verdict.passed:
        return CandidateStatus.PASSED
    return CandidateStatus.RED if candidate.evaluable else CandidateStatus.UNEVALUABLE


def _failure(candidate: Candidate) -> str:
    if candidate.failure is None:
        return ""
    detail = candidate.failure_detail
    return f"{candidate.failure.value}: {detail}" if detail else candidate.failure.value
