"""Times that the engine gave, on this host's clock: hosts whose clocks differ keep the same deadlines."""

from __future__ import annotations

import time
from datetime import datetime

from temporalio import activity

from ..workflows.model.attempt import AgentReport

TOLERANCE_S = 5.0
"""A smaller difference is what it takes to hand a step over, or does no harm."""


def offset() -> float:
    """Seconds by which this host's clock is ahead of the engine's; 0 outside of an activity, or within tolerance.

    Call it when the activity begins: it compares with the time at which the engine handed the step over.
    """
    return ahead(activity.info().started_time, time.time()) if activity.in_activity() else 0.0


def ahead(started: datetime, now: float) -> float:
    """By how much a clock that says `now` is ahead of the engine's, which has just said `started`."""
    difference = now - started.timestamp()
    return difference if abs(difference) > TOLERANCE_S else 0.0


def here(at: float | None, ahead: float) -> float | None:
    """A time of the engine's on a clock that is so far ahead; None stays None."""
    return None if at is None else at + ahead


def report_of(report: AgentReport, ahead: float) -> AgentReport:
    """A launch's report with the times in it on the engine's clock."""
    if not ahead:
        return report
    account, blocked = report.account, report.blocked
    if account is not None and account.retry_at is not None:
        account = account.model_copy(update={"retry_at": account.retry_at - ahead})
    if blocked is not None and blocked.retry_at is not None:
        blocked = blocked.model_copy(update={"retry_at": blocked.retry_at - ahead})
    return report.model_copy(update={"account": account, "blocked": blocked})
