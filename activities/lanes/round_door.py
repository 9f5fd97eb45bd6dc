"""The round as intake knows it: it takes submissions, and tells of tickets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

from temporalio import activity
from temporalio.client import (
    RPCTimeoutOrCancelledError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from ...workflows.model.round.ticket import Cause, Submission, TicketState, TicketStatus

PATIENCE = timedelta(seconds=20)
"""For one call: a round whose worker is away does not answer, and is asked again."""


class UnansweredError(Exception):
    """The round does not answer for now."""


class RoundDoor(Protocol):
    """One round."""

    async def submit(self, submission: Submission) -> TicketStatus:
        """Hand a submission over; the same ticket again changes nothing. Raises UnansweredError."""
        ...

    async def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        """What a lane may know of its tickets. Raises UnansweredError."""
        ...


class EngineRound:
    """A round that runs on the engine, by the workflow's update `submit` and its query `tickets`."""

    def __init__(self, run: str) -> None:
        self._handle: WorkflowHandle[Any, Any] = activity.client().get_workflow_handle(run)

    async def submit(self, submission: Submission) -> TicketStatus:
        """The update's id is the ticket: asked again, the engine gives its first answer."""
        try:
            with _answering():
                answer: TicketStatus = await self._handle.execute_update(
                    "submit", submission, id=submission.ticket, result_type=TicketStatus, rpc_timeout=PATIENCE
                )
                return answer
        except WorkflowUpdateFailedError as error:
            return rejected(submission, Cause.MALFORMED, f"the round refuses it: {error.cause}")
        except RPCError:
            return rejected(submission, Cause.ROUND_OVER, "the round is over")

    async def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        """As the workflow has them now; none once the round is gone."""
        try:
            with _answering():
                found: tuple[TicketStatus, ...] = await self._handle.query(
                    "tickets", lane, result_type=tuple[TicketStatus, ...], rpc_timeout=PATIENCE
                )
                return found
        except (RPCError, WorkflowQueryFailedError):
            return ()


def rejected(submission: Submission, cause: Cause, detail: str) -> TicketStatus:
    """The answer to a submission that did not reach the round's ledger."""
    return TicketStatus(ticket=submission.ticket, state=TicketState.REJECTED, cause=cause, detail=detail)


@contextmanager
def _answering() -> Iterator[None]:
    """Tell a round that does not answer from one that is not there, and both from our own end."""
    try:
        yield
    except (RPCError, RPCTimeoutOrCancelledError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            raise
        raise UnansweredError(str(error)) from error
