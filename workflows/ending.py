"""How a run ends: a status with its typed reason."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio.exceptions import ActivityError, ApplicationError

from .host import host_lost
from .model.reason import Datum, Reason, RunReason
from .model.view import RunStatus

_IN_THE_WAY = frozenset({"RefusedError", "HostFaultError", "OSError"})
"""Errors of a step that are no fault of `orch`."""


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


def broken(error: BaseException, *, begun: bool = True) -> Ending:
    """A step of the run could not be done: its host is gone, or it failed for a reason that is no outcome.

    Before any agent has `begun`, what stands in the way on the host (a full disk, a filter that fails) refuses the run.
    """
    lost = isinstance(error, ActivityError) and host_lost(error)
    cause = error.cause if isinstance(error, ActivityError) else None
    step = error.activity_type if isinstance(error, ActivityError) else ""
    in_the_way = isinstance(cause, ApplicationError) and cause.type in _IN_THE_WAY and not begun
    code = RunReason.HOST_LOST if lost else RunReason.PREFLIGHT_FAILED if in_the_way else RunReason.INTERNAL
    return failed(code, step=step, detail=str(cause or error)[:500])
