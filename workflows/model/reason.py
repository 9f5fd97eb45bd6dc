"""Typed reasons: why a run ended, why a candidate lost, why a promotion was refused."""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import Field

from .base import Value

Datum = str | int | float | bool | tuple[str, ...] | None
"""What a reason may carry: small, printable facts."""


Code = TypeVar("Code", bound=StrEnum)


class RunReason(StrEnum):
    """Why a run ended (or waits)."""

    DONE = "done"
    ALREADY_GREEN = "already_green"
    PREFLIGHT_FAILED = "preflight_failed"
    RUNG_CANNOT_RUN = "rung_cannot_run"
    SETUP_FAILED = "setup_failed"
    TREE_BUSY = "tree_busy"
    SEAL_REJECTED = "seal_rejected"
    SEAL_WAITING = "seal_waiting"
    ITERATION_CAP = "iteration_cap"
    BUDGET_TOKENS = "budget_tokens"
    BUDGET_USD = "budget_usd"
    DEADLINE = "deadline"
    AGENT_UNUSABLE = "agent_unusable"
    STUCK_NO_DIFF = "stuck_no_diff"
    STUCK_CRASHED = "stuck_crashed"
    STUCK_UNEVALUABLE = "stuck_unevaluable"
    STUCK_TIMEOUT = "stuck_timeout"
    STUCK_OSCILLATION = "stuck_oscillation"
    STUCK_REPEAT = "stuck_repeat"
    PROMOTION_REFUSED = "promotion_refused"
    INCUMBENT_FAILS = "incumbent_fails"
    TOO_NOISY = "too_noisy"
    NO_GAIN = "no_gain"
    OVERTAKEN = "overtaken"
    CANCELLED = "cancelled"
    HOST_LOST = "host_lost"
    INTERNAL = "internal"


class CandidateReason(StrEnum):
    """Why a candidate won, lost or could not be ranked."""

    WON = "won"
    FEWER_RUNGS = "fewer_rungs"
    LOST_RUNGS = "lost_rungs"
    LESS_PROGRESS = "less_progress"
    VETOED = "vetoed"
    UNCHANGED = "unchanged"
    COSTLIER = "costlier"
    LATER_INDEX = "later_index"
    UNEVALUABLE = "unevaluable"
    NOT_STARTED = "not_started"
    CANCELLED = "cancelled"


class PromotionReason(StrEnum):
    """Why a promotion was refused; the result stays available."""

    EDITED = "working_tree_edited"
    IN_PROGRESS = "operation_in_progress"
    BRANCH_EXISTS = "branch_exists"
    BRANCH_INVALID = "branch_invalid"
    BUSY = "tree_busy"
    NO_SPACE = "no_space"
    NOT_WRITABLE = "not_writable"
    UNSUPPORTED = "unsupported"


class Reason(Value, Generic[Code]):
    """A code with the facts behind it; text is rendered at the edge."""

    code: Code
    data: dict[str, Datum] = Field(default_factory=dict)
