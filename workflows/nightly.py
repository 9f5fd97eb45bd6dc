"""What a schedule starts: a thin run that starts the real one, so that a failed run can pause its schedule."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from .goal import Goal
from .model.goal import GoalRequest
from .model.reason import RunReason
from .model.view import RunStatus, RunView


@workflow.defn(name="Scheduled")
class Scheduled:
    """Starts one goal run under an id of its own and fails when that run did not succeed."""

    @workflow.run
    async def run(self, request: GoalRequest) -> RunView | None:
        """Return the run's view, None when an operator cancelled it; neither that nor a green ladder is a failure."""
        run = f"{request.run}-{workflow.now():%Y%m%d-%H%M%S}-{workflow.info().run_id[-4:]}"
        try:
            view = await self._goal(request, run)
        except ChildWorkflowError as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is None:
                return None
            raise
        green = view.reason is not None and view.reason.code is RunReason.ALREADY_GREEN
        if view.status is not RunStatus.SUCCEEDED and not green:
            code = view.reason.code if view.reason else "no reason"
            raise ApplicationError(f"run {run} ended {view.status}: {code}", type="RunFailed", non_retryable=True)
        return view

    async def _goal(self, request: GoalRequest, run: str) -> RunView:
        return await workflow.execute_child_workflow(
            Goal.run,
            request.model_copy(update={"run": run}),
            id=run,
            static_summary=request.contract.goal.splitlines()[0][:200],
            search_attributes=_attributes(request),
            memo=_memo(request),
            parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
            cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


def _memo(request: GoalRequest) -> dict[str, str]:
    noted = {"goal": request.contract.goal, "promote": str(request.promote)}
    return {**noted, "repo": request.repo} if request.label else noted


def _attributes(request: GoalRequest) -> TypedSearchAttributes:
    values = {"OrchKind": "goal", "OrchRepo": request.label or request.repo, "OrchStatus": RunStatus.RUNNING.value}
    pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(name), text) for name, text in values.items()]
    return TypedSearchAttributes(pairs)
