"""One attempt as a child workflow: workspace → agent → snapshot → measure → close."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import inf

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.workflow import ActivityConfig

from . import effects
from .claiming import claim, failure, failure_detail, waiting_for_host
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
    Waiting,
    Workspace,
    YieldSlot,
)
from .model.candidate import Candidate, Failure
from .model.exit import Exit, ExitKind
from .model.outcome import Outcome, OutcomeKind, Session
from .model.placement import Exchange
from .model.verdict import Excerpt, Verdict
from .rules.outcome import judge, retry_at, with_tree
from .rules.sessions import FRESH, own_session, worth_anew
from .stopping import raise_if_cancelled

LATE = "the run's deadline passed before there was a slot"

SLOT_KEPT_S = 10.0
"""Seconds of rest for which an attempt keeps its slot; in a longer one others may work."""


@workflow.defn(name="Attempt")
class Attempt:
    """Runs the steps of one attempt in order; whatever they bring is returned as a candidate, never raised."""

    @workflow.init
    def __init__(self, request: AttemptRequest) -> None:
        self._request = request
        self._candidate = Candidate(attempt=request.attempt, agent=request.agent, origin=request.origin)
        self._session = request.session
        self._fork = request.fork
        self._host = "" if request.exchange else request.host

    @workflow.run
    async def run(self, request: AttemptRequest) -> Candidate:
        """Return what the attempt left; also when a step failed, and also when it was cancelled."""
        try:
            await self._steps(request)
        except (ActivityError, asyncio.CancelledError) as error:
            self._note(failure=failure(error), failure_detail=failure_detail(error))
        await asyncio.shield(self._close(request))
        return self._candidate

    async def _steps(self, request: AttemptRequest) -> None:
        if request.exchange and not await self._claim(request):
            return
        if await self._open(request):
            await self._work(request)
            if self._candidate.exit is not None and self._candidate.exit.kind is not ExitKind.NOT_STARTED:
                await self._measured(request, await self._snapshot(request))

    async def _claim(self, request: AttemptRequest) -> bool:
        """Wait for a host with room; False when the run's deadline passed before there was one."""
        self._begin(waiting_for_host(request))
        self._host = await claim(request) or ""
        self._note(host=self._host)
        return bool(self._host) or self._late()

    def _late(self) -> bool:
        late = Exit(kind=ExitKind.NOT_STARTED, detail=LATE)
        self._note(exit=late, failure=Failure.NOT_STARTED, failure_detail=LATE)
        return False

    async def _open(self, request: AttemptRequest) -> bool:
        workspace = await self._workspace(request)
        if workspace.path is None:
            return self._late()
        if workspace.setup is None or workspace.setup.ok:
            return True
        output = workspace.setup_output
        self._note(failure=Failure.SETUP, failure_detail=f"set-up: {workspace.setup}", output=output)
        return False

    async def _workspace(self, request: AttemptRequest) -> Workspace:
        """Wait for a slot and open the workspace; the one that is open already after a rest."""
        self._begin("waiting for a slot and opening the workspace")
        return await workflow.execute_activity(
            effects.open_workspace,
            OpenWorkspace(
                attempt=request.attempt,
                store=self._store(request),
                commit=request.commit,
                contract=request.contract,
                sandbox=request.sandbox,
                deadline=request.deadline,
                exchange=request.exchange,
            ),
            **self._options(effects.WAIT, "open workspace"),
        )

    async def _work(self, request: AttemptRequest) -> None:
        """Launch the agent, and again while it ends for a reason that passes, inside its own time and the run's."""
        last = inf if request.deadline is None else request.deadline
        ends: Counter[OutcomeKind] = Counter()
        while (left_s := self._left_s()) > 0:
            taken_up = self._session
            report = await self._launch(request, left_s)
            outcome = report.blocked or judge(report.exit, report.account, report.limit)
            self._account_for(report, outcome)
            if taken_up and not report.lost_session and self._may_begin_anew(taken_up, outcome, report):
                self._begin_anew(taken_up)
                continue
            again = retry_at(outcome, before=ends[outcome.kind], now=workflow.now().timestamp(), deadline=last)
            ends[outcome.kind] += 0 if report.blocked else 1
            if again is None or not await self._rest(request, outcome, again):
                return

    def _left_s(self) -> float:
        """Wall seconds that the agent still has, by what its launches took: a worker that was away cost it nothing."""
        return self._request.limit_s - self._candidate.usage.wall_s

    async def _launch(self, request: AttemptRequest, limit_s: float) -> AgentReport:
        self._begin("the agent works")
        return await workflow.execute_activity(
            effects.run_agent,
            RunAgent(
                attempt=request.attempt,
                agent=request.agent,
                store=self._store(request),
                contract=request.contract,
                feedback=request.feedback,
                notes=request.notes,
                deadline=request.deadline,
                limit_s=limit_s,
                sandbox=request.sandbox,
                launch=self._candidate.launches + 1,
                session=self._session,
                fork=self._fork,
                template=request.template,
                spend=request.spend,
            ),
            **self._options(effects.WAIT, f"agent {agent_label(request.agent)}"),
        )

    def _account_for(self, report: AgentReport, outcome: Outcome) -> None:
        """Keep what a launch left; what it used is added to what the launches before it used."""
        self._note(outcome=outcome)
        if report.blocked and self._candidate.launches:
            return
        output = Excerpt() if report.exit.ok else report.stderr
        self._note(exit=report.exit, account=report.account, output=output, failure=None, failure_detail="")
        if report.exit.kind is ExitKind.NOT_STARTED:
            self._note(failure=Failure.NOT_STARTED, failure_detail=outcome.detail or report.exit.detail)
            return
        if report.lost_session and self._session:
            self._begin_anew(self._session)
        self._note(
            launches=self._candidate.launches + 1,
            usage=self._candidate.usage + report.usage,
            session=report.session,
            session_used=report.session_used,
            message=report.message,
        )
        if report.session or report.lost_session:  # else it did not get as far as to begin one
            name, used = self._request.attempt.name, report.session_used
            self._session, self._fork = own_session(self._request.agent, report.session, name, used), False

    def _may_begin_anew(self, session: Session, outcome: Outcome, report: AgentReport) -> bool:
        anew = self._candidate.origin.startswith(FRESH)  # once is enough
        return not anew and worth_anew(session, self._request.attempt.name, outcome, report.account)

    def _begin_anew(self, lost: Session) -> None:
        """Forget the session to take up, and say so."""
        self._session, self._fork = None, False
        self._note(origin=f"{FRESH}: the session of {lost.attempt} cannot be taken up")

    async def _rest(self, request: AttemptRequest, outcome: Outcome, until: float) -> bool:
        """Wait, and let the run tell of it; False when there was no slot again before the run's deadline."""
        self._show(f"waits until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M:%S} UTC: {outcome.kind.value}")
        waiting = Waiting(attempt=request.attempt, agent=request.agent, outcome=outcome, until=until)
        await self._tell("attempt_waits", waiting)
        left = max(0.0, until - workflow.now().timestamp())
        if left > SLOT_KEPT_S:
            slot = self._options(effects.STEP, "give the slot back")
            await workflow.execute_activity(effects.yield_slot, YieldSlot(attempt=request.attempt), **slot)
        await workflow.sleep(left, summary=f"{outcome.kind.value.replace('_', ' ')}: wait for the provider")
        await self._tell("attempt_goes_on", waiting)
        return left <= SLOT_KEPT_S or (await self._workspace(request)).path is not None

    async def _tell(self, signal: str, waiting: Waiting) -> None:
        """Tell the run; one that is gone need not know."""
        parent = workflow.info().parent
        if parent is not None:
            with suppress(ApplicationError):
                await workflow.get_external_workflow_handle(parent.workflow_id).signal(signal, waiting)

    async def _snapshot(self, request: AttemptRequest) -> Snapshot:
        self._begin("recording the tree")
        snapshot = await workflow.execute_activity(
            effects.take_snapshot,
            TakeSnapshot(
                attempt=request.attempt,
                store=self._store(request),
                commit=request.commit,
                contract=request.contract,
                exchange=self._published,
            ),
            **self._options(effects.STEP, "snapshot"),
        )
        self._note(snapshot=snapshot)
        if self._candidate.outcome is not None:
            self._note(outcome=with_tree(self._candidate.outcome, changed=snapshot.changed > 0))
        return snapshot

    async def _measured(self, request: AttemptRequest, snapshot: Snapshot) -> None:
        """Measure; a tree that was published outlives its host and is measured where the run is."""
        try:
            await self._measure(request, snapshot)
        except ActivityError as error:
            if self._published is None or not host_lost(error):
                raise
            self._host = request.host
            await self._measure(request, snapshot)

    async def _measure(self, request: AttemptRequest, snapshot: Snapshot) -> Verdict:
        self._begin("measuring")
        verdict = await workflow.execute_activity(
            effects.measure,
            Measure(
                attempt=request.attempt,
                store=self._store(request),
                commit=snapshot.commit,
                tree=snapshot.tree,
                contract=request.contract,
                gate=False,
                sandbox=request.sandbox,
                exchange=request.exchange,
            ),
            **self._options(effects.WAIT, "measure"),
        )
        self._note(verdict=verdict)
        return verdict

    async def _close(self, request: AttemptRequest) -> None:
        if not self._host or (request.exchange and self._candidate.failure is Failure.HOST_LOST):
            return  # nothing was begun, or what is left is the lost host's to clear away when it comes back
        self._show("cleaning up")
        try:
            await workflow.execute_activity(
                effects.close_attempt,
                CloseAttempt(attempt=request.attempt, store=self._store(request), exchange=self._published),
                **self._options(effects.STEP, "close"),
            )
        except ActivityError as error:
            workflow.logger.warning(
                "attempt not closed", extra={"attempt": request.attempt.name, "why": failure_detail(error)}
            )

    def _note(self, **facts: object) -> None:
        self._candidate = self._candidate.model_copy(update=facts)

    def _options(self, config: ActivityConfig, step: str) -> ActivityConfig:
        summary = f"candidate {self._request.attempt.candidate}: {step}"
        away = timedelta(seconds=self._request.placement.away_s) if self._elsewhere else effects.AWAY
        return effects.options(config, queue=host_queue(self._host), summary=summary, away=away)

    @property
    def _elsewhere(self) -> bool:
        return self._host != self._request.host

    def _store(self, request: AttemptRequest) -> str:
        """The key of the repository's store on the attempt's host."""
        return request.exchange.key if request.exchange and self._elsewhere else request.store

    @property
    def _published(self) -> Exchange | None:
        """Where what it leaves is published: what the run's own host has needs no copy."""
        return self._request.exchange if self._elsewhere else None

    def _begin(self, step: str) -> None:
        raise_if_cancelled()
        self._show(step)

    def _show(self, step: str) -> None:
        workflow.set_current_details(f"candidate {self._request.attempt.candidate}, `{self._request.agent}`: {step}")
