"""What people see of a run: a projection of its ledger, the document of `orch show --json`."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from .base import Sha, Value
from .candidate import Candidate
from .promotion import PromoteMode
from .reason import CandidateReason, PromotionReason, Reason, RunReason
from .usage import Usage


class RunStatus(StrEnum):
    """Where a run is."""

    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CandidateStatus(StrEnum):
    """Where a candidate is."""

    QUEUED = "queued"
    RUNNING = "running"
    RESTING = "resting"
    PASSED = "passed"
    RED = "red"
    UNEVALUABLE = "unevaluable"
    FAILED = "failed"


class UsageView(Value):
    """Totals; None is unknown, not zero. `priced`: the date of the price table behind `usd`, where there is one."""

    tokens: int | None = None
    tokens_cached: int | None = None
    usd: float | None = None
    wall_s: float = 0.0
    priced: str = ""

    @classmethod
    def of(cls, usage: Usage) -> UsageView:
        """The totals of a usage."""
        return cls(
            tokens=usage.tokens,
            tokens_cached=usage.tokens_cached,
            usd=usage.usd,
            wall_s=usage.wall_s,
            priced=usage.priced,
        )


class RungView(Value):
    """One rung's result in short."""

    name: str
    result: str
    wall_s: float


class CandidateView(Value):
    """One line of the table that answers who won and why; `rank` counts the iteration's candidates, from 1."""

    index: int
    rank: int | None = None
    agent: str
    status: CandidateStatus
    rungs_passed: int | None = None
    rungs_total: int
    rungs: tuple[RungView, ...] = ()
    changed: bool | None = None
    paths: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    tree: Sha | None = None
    commit: Sha | None = None
    agent_exit: str = ""
    outcome: str = ""
    outcome_detail: str = ""
    resting_until: float | None = None
    launches: int = 0
    turns: int | None = None
    denials: tuple[str, ...] = ()
    unknown_events: int = 0
    session: str = ""
    origin: str = ""
    usage: UsageView = UsageView()
    message: str = ""
    reason: Reason[CandidateReason] | None = None
    failure: str = ""
    host: str = ""
    replaced: tuple[str, ...] = ()

    @classmethod
    def of(cls, candidate: Candidate, reason: Reason[CandidateReason] | None, rungs_total: int) -> CandidateView:
        """The line of a candidate that was measured, or failed before; `rungs_total` is the ladder's length."""
        verdict, snapshot = candidate.verdict, candidate.snapshot
        return cls(
            index=candidate.index,
            agent=candidate.agent,
            status=_status(candidate),
            rungs_passed=verdict.rungs_passed if verdict else None,
            rungs_total=verdict.rungs_total if verdict else rungs_total,
            rungs=tuple(RungView(name=r.name, result=str(r.exit), wall_s=r.wall_s) for r in verdict.rungs)
            if verdict
            else (),
            changed=candidate.changed if snapshot else None,
            paths=snapshot.paths if snapshot else (),
            restored=snapshot.restored if snapshot else (),
            tree=candidate.tree,
            commit=snapshot.commit if snapshot else None,
            agent_exit=str(candidate.exit) if candidate.exit else "",
            **_told(candidate),
            usage=UsageView.of(candidate.usage),
            message=candidate.message,
            reason=reason,
            host=candidate.host,
            failure=": ".join(part for part in (candidate.failure or "", candidate.failure_detail) if part)
            if candidate.failure
            else "",
        )


def _told(candidate: Candidate) -> dict[str, Any]:
    """What became of the agent's last launch, and what it told of it."""
    outcome, account = candidate.outcome, candidate.account
    return {
        "outcome": outcome.kind.value if outcome else "",
        "outcome_detail": outcome.detail if outcome else "",
        "launches": candidate.launches,
        "turns": account.turns if account else None,
        "denials": account.denials if account else (),
        "unknown_events": account.unknown_events if account else 0,
        "session": candidate.session,
        "origin": candidate.origin,
    }


def _status(candidate: Candidate) -> CandidateStatus:
    if candidate.verdict is None:
        return CandidateStatus.FAILED
    if candidate.verdict.passed:
        return CandidateStatus.PASSED
    return CandidateStatus.RED if candidate.evaluable else CandidateStatus.UNEVALUABLE


class IterationView(Value):
    """One iteration: who competed, who won, by which key."""

    ordinal: int
    baseline: Sha
    winner: int | None = None
    decided_by: str = ""
    candidates: tuple[CandidateView, ...] = ()
    gate: str = ""
    review: str = ""


class PromotedView(Value):
    """Where the result stands; `tree` is None when refused."""

    tree: Sha | None
    mode: PromoteMode
    branch: str = ""
    paths: int = 0
    refused: Reason[PromotionReason] | None = None


class RunView(Value):
    """The document of `orch show ID --json`."""

    id: str
    kind: str
    status: RunStatus
    reason: Reason[RunReason] | None = None
    goal: str
    repo: str
    started_at: str
    ended_at: str | None = None
    baseline: Sha | None = None
    baseline_dirty: bool = False
    baseline_rungs_passed: int | None = None
    head: Sha | None = None
    contract_digest: str | None = None
    rungs: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    sandbox: bool | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    iterations: tuple[IterationView, ...] = ()
    promote: str = ""
    promoted: PromotedView | None = None
    usage: UsageView = UsageView()
