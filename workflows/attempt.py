"""One attempt as a child workflow: workspace → agent → snapshot → measure → close."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception
from temporalio.workflow import ActivityConfig

from . import effects
from .details import agent_label
from .host import host_lost, host_queue
from .model.attempt import (
    AgentReport,
    AttemptRequest,
    CloseAttempt,
    Measure,
    OpenWorkspace,
    RunAgent,
    Snapshot,
    TakeSnapshot,
)
from .model.candidate import Candidate, Failure
from .model.exit import Exit, ExitKind
from .model.verdict import Verdict
from .stopping import raise_if_cancelled


@workflow.defn(name="Attempt")
class Attempt:
    """Runs the steps of one attempt in order; whatever they bring is returned as a candidate, never raised."""

    @workflow.init
    def __init__(self, request: AttemptRequest) -> None:
        self._request = request
        self._candidate = Candidate(attempt=request.attempt, agent=request.agent)

    @workflow.run
    async def run(self, request: AttemptRequest) -> Candidate:
        """Return what the attempt left; also when a step failed, and also when it was cancelled."""
        try:
            await self._steps(request)
        except (ActivityError, asyncio.CancelledError) as error:
            self._note(failure=_failure(error), failure_detail=_detail(error))
        await asyncio.shield(self._close(request))
        return self._candidate

    async def _steps(self, request: AttemptRequest) -> None:
        if await self._open(request):
            report = await self._agent(request)
            if report.exit.kind is not ExitKind.NOT_STARTED:
                await self._measure(request, await self._snapshot(request))

    async def _open(self, request: AttemptRequest) -> bool:
        self._begin("waiting for a slot and opening the workspace")
        workspace = await workflow.execute_activity(
            effects.open_workspace,
            OpenWorkspace(
                attempt=request.attempt,
                store=request.store,
                commit=request.commit,
                contract=request.contract,
                sandbox=request.sandbox,
                deadline=request.deadline,
            ),
            **self._options(effects.WAIT, "open workspace"),
        )
        if workspace.path is None:
            late = Exit(kind=ExitKind.NOT_STARTED, detail="the run's deadline passed before there was a slot")
            self._note(exit=late, failure=Failure.NOT_STARTED, failure_detail=late.detail)
            return False
        if workspace.setup is None or workspace.setup.ok:
            return True
        output = workspace.setup_output
        self._note(failure=Failure.SETUP, failure_detail=f"set-up: {workspace.setup}", output=output)
        return False

    async def _agent(self, request: AttemptRequest) -> AgentReport:
        self._begin("the agent works")
        limit = workflow.now().timestamp() + request.limit_s
        report = await workflow.execute_activity(
            effects.run_agent,
            RunAgent(
                attempt=request.attempt,
                agent=request.agent,
                store=request.store,
                contract=request.contract,
                feedback=request.feedback,
                notes=request.notes,
                deadline=limit if request.deadline is None else min(limit, request.deadline),
                sandbox=request.sandbox,
            ),
            **self._options(effects.WAIT, f"agent {agent_label(request.agent)}"),
        )
        self._note(exit=report.exit, usage=report.usage, session=report.session, message=report.message)
        if not report.exit.ok:
            self._note(output=report.stderr)
        if report.exit.kind is ExitKind.NOT_STARTED:
            self._note(failure=Failure.NOT_STARTED, failure_detail=report.exit.detail)
        return report

    async def _snapshot(self, request: AttemptRequest) -> Snapshot:
        self._begin("recording the tree")
        snapshot = await workflow.execute_activity(
            effects.take_snapshot,
            TakeSnapshot(
                attempt=request.attempt, store=request.store, commit=request.commit, contract=request.contract
            ),
            **self._options(effects.STEP, "snapshot"),
        )
        self._note(snapshot=snapshot)
        return snapshot

    async def _measure(self, request: AttemptRequest, snapshot: Snapshot) -> Verdict:
        self._begin("measuring")
        verdict = await workflow.execute_activity(
            effects.measure,
            Measure(
                attempt=request.attempt,
                store=request.store,
                commit=snapshot.commit,
                tree=snapshot.tree,
                contract=request.contract,
                gate=False,
                sandbox=request.sandbox,
            ),
            **self._options(effects.WAIT, "measure"),
        )
        self._note(verdict=verdict)
        return verdict

    async def _close(self, request: AttemptRequest) -> None:
        self._show("cleaning up")
        try:
            await workflow.execute_activity(
                effects.close_attempt,
                CloseAttempt(attempt=request.attempt, store=request.store),
                **self._options(effects.STEP, "close"),
            )
        except ActivityError as error:
            workflow.logger.warning(
                "attempt not closed", extra={"attempt": request.attempt.name, "why": _detail(error)}
            )

    def _note(self, **facts: object) -> None:
        self._candidate = self._candidate.model_copy(update=facts)

    def _options(self, config: ActivityConfig, step: str) -> ActivityConfig:
        summary = f"candidate {self._request.attempt.candidate}: {step}"
        return effects.options(config, queue=host_queue(self._request.host), summary=summary)

    def _begin(self, step: str) -> None:
        raise_if_cancelled()
        self._show(step)

    def _show(self, step: str) -> None:
        workflow.set_current_details(f"candidate {self._request.attempt.candidate}, `{self._request.agent}`: {step}")


def _failure(error: BaseException) -> Failure:
    if is_cancelled_exception(error):
        return Failure.CANCELLED
    return Failure.HOST_LOST if isinstance(error, ActivityError) and host_lost(error) else Failure.INTERNAL


def _detail(error: BaseException) -> str:
    if is_cancelled_exception(error):
        return "cancelled"
    cause = error.cause if isinstance(error, ActivityError) else None
    return str(cause or error)[:500]
