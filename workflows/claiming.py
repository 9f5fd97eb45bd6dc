"""How an attempt finds a host, and what it means when a step of it fails."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from . import effects
from .host import claim_queue, host_lost
from .model.attempt import AttemptRequest
from .model.candidate import Failure
from .model.claim import Claimed, ClaimHost
from .stopping import ended_by_request


async def claim(request: AttemptRequest) -> str | None:
    """The id of a host that reserved a slot; None when the run's deadline passed before one had room."""
    if request.exchange is None:
        return request.host
    wait = effects.CLAIM.copy()
    wait["task_queue"] = claim_queue(request.placement.needs)
    wait["summary"] = f"candidate {request.attempt.candidate}: {waiting_for_host(request)}"
    if request.deadline is not None:
        left = request.deadline - workflow.now().timestamp()
        wait["schedule_to_close_timeout"] = timedelta(seconds=max(1.0, left))
    asked = ClaimHost(attempt=request.attempt, agent=request.agent, exchange=request.exchange, sandbox=request.sandbox)
    try:
        claimed: Claimed = await workflow.execute_activity(effects.claim_host, asked, **wait)
    except ActivityError as error:
        late = request.deadline is not None and workflow.now().timestamp() > request.deadline - 1.0
        if is_cancelled_exception(error) or not late:
            raise
        return None
    return claimed.host


def waiting_for_host(request: AttemptRequest) -> str:
    """What the attempt waits for, in words."""
    needs = request.placement.needs
    return "waiting for a host with room" + (f" and {', '.join(needs)}" if needs else "")


def failure(error: BaseException) -> Failure:
    """At what an attempt ended whose step raised this."""
    if ended_by_request(error):
        return Failure.CANCELLED
    return Failure.HOST_LOST if isinstance(error, ActivityError) and host_lost(error) else Failure.INTERNAL


def failure_detail(error: BaseException) -> str:
    """What the step said."""
    if is_cancelled_exception(error):
        return "cancelled"
    cause = error.cause if isinstance(error, ActivityError) else None
    return str(cause or error)[:500]
