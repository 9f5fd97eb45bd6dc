"""How a run ends: a status with its typed reason."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio.exceptions import ActivityError

from .host import host_lost
from .model.reason import Datum, Reason, RunReason
from .model.view import RunStatus


@dataclass(frozen=True)
class Ending:
    """The last word of a run."""

    status: RunStatus
    reason: Reason[RunReason]


def succeeded() -> Ending:
    """Both keys turned, and the result stands where it was asked for."""
    return Ending(RunStatus.SUCCEEDED, Reason(code=RunReason.DONE))


def cancelled() -> Ending:
    """An operator cancelled the run."""
    return Ending(RunStatus.CANCELLED, Reason(code=RunReason.CANCELLED))


def failed(code: RunReason, **data: Datum) -> Ending:
    """The run ended without success."""
    return Ending(RunStatus.FAILED, Reason(code=code, data=data))


def broken(error: BaseException) -> Ending:
    """A step of the run could not be done: its host is gone, or it failed for a reason that is no outcome."""
    lost = isinstance(error, ActivityError) and host_lost(error)
    cause = error.cause if isinstance(error, ActivityError) else None
    step = error.activity_type if isinstance(error, ActivityError) else ""
    code = RunReason.HOST_LOST if lost else RunReason.INTERNAL
    return failed(code, step=step, detail=str(cause or error)[:500])
