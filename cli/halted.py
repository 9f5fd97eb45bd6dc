"""Why a run stands still although its worker lives: its last task failed, and is tried until the cause is gone."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client as Temporal
from temporalio.exceptions import FailureError
from temporalio.service import RPCError

from ..workflows.errors import RefusedError, UnreachableError
from .link import RPC_TIMEOUT, Link
from .talk import one_line

_NEWEST = 20
"""Events looked at: signals and timers may stand after the task that failed."""

_LASTING = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
}
"""Causes that another try alone does not mend: a key that the worker lacks, a history that does not fit its code."""


async def halted(link: Link, run: str) -> RefusedError | None:
    """What keeps the run's worker from going on with it; None when nothing does, or nobody can tell."""
    try:
        why = await link.call(lambda temporal: _last_failure(temporal, run), patience=0)
    except (UnreachableError, RPCError):
        return None
    if why is None:
        return None
    return RefusedError(
        f"{run} cannot go on: {one_line(why, 300)}",
        hint="it goes on by itself once a worker can read it; `orch keys list` shows the keys here",
    )


async def _last_failure(temporal: Temporal, run: str) -> str | None:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=temporal.namespace, execution=WorkflowExecution(workflow_id=run), maximum_page_size=_NEWEST
    )
    answer = await temporal.workflow_service.get_workflow_execution_history_reverse(request, timeout=RPC_TIMEOUT)
    closed = (event for event in answer.history.events if event.event_type in _CLOSES)
    return await _told(temporal, next(closed, None))


_CLOSES = {
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
}


async def _told(temporal: Temporal, event: HistoryEvent | None) -> str | None:
    if event is None or event.event_type != EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
        return None
    failed = event.workflow_task_failed_event_attributes
    if failed.cause not in _LASTING:
        return None
    error = await temporal.data_converter.decode_failure(failed.failure)
    return error.message if isinstance(error, FailureError) else str(error)
