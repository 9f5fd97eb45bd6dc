"""What people see of a run: a projection of its ledger, the document of `orch show --json`."""

from __future__ import annotations

from enum import StrEnum

from .base import Sha, Value
from .promotion import PromoteMode
from .reason import CandidateReason, PromotionReason, Reason, RunReason


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
    PASSED = "passed"
    RED = "red"
    UNEVALUABLE = "unevaluable"
    FAILED = "failed"


class UsageView(Value):
    """Totals; None is unknown, not zero."""

    tokens: int | None = None
    usd: float | None = None
    wall_s: float = 0.0


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
    usage: UsageView = UsageView()
    message: str = ""
    reason: Reason[CandidateReason] | None = None
    failure: str = ""


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
