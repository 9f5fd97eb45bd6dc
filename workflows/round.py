"""An optimization round: qualify the incumbent → lanes and measurements side by side → compose → rerun → record."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError

from .ending import Ending, broken, cancelled, failed, succeeded
from .guard import Guard
from .landing import land
from .lane_steps import LaneSteps
from .lanes import run_lane
from .ledger import Ledger
from .model.attempt import AttemptKey
from .model.base import Sha
from .model.event import LedgerPage, RunEnded, RunPromoted
from .model.promotion import PromoteMode
from .model.reason import RunReason
from .model.round.campaign import RoundRecord
from .model.round.event import RoundReady, RoundRecorded, RoundStarted, TicketQueued, TicketRejected
from .model.round.plan import LanePlan
from .model.round.request import RoundRequest
from .model.round.ticket import Cause, Submission, TicketState, TicketStatus
from .model.round.view import RoundView
from .model.view import RunStatus
from .round_details import round_details
from .round_state import RoundState
from .round_steps import LANES, RoundSteps
from .rules.admission import Desk, refusal
from .rules.campaign import revisions
from .rules.round_projection import project_round
from .stopping import ended_by_request, to_its_end, together
from .ticket_queue import TicketQueue
from .trials import Trials

STATUS = SearchAttributeKey.for_keyword("OrchStatus")


@workflow.defn(name="Round")
class Round:
    """Lets lanes look for independent gains, measures what they submit, and composes what holds."""

    @workflow.init
    def __init__(self, request: RoundRequest) -> None:
        self._request = request
        self._state = RoundState()
        self._ledger = Ledger(self._state, self._state.apply, project_round, round_details)
        self._steps = RoundSteps(request, self._ledger)
        self._trials = Trials(self._steps)
        self._guard = Guard(self._ledger, self._trials)
        self._recorded = False
        self._queue = TicketQueue(self._ledger, self._steps, self._trials, self._guard)

    @workflow.run
    async def run(self, request: RoundRequest) -> RoundView:
        """Return the round's final view; a cancelled round cleans up first and then ends as cancelled."""
        try:
            ending = await self._pursue(request)
        except (ActivityError, asyncio.CancelledError) as error:
            ending = cancelled() if ended_by_request(error) else broken(error, begun=self._state.begun)
        await to_its_end(self._end(ending))
        if ending.status is RunStatus.CANCELLED:
            raise asyncio.CancelledError
        return self._ledger.view()

    @workflow.query
    def ledger(self, since: int) -> LedgerPage:
        """The events after `since`, a page at a time."""
        return self._ledger.page(since)

    @workflow.query
    def view(self) -> RoundView:
        """The round as it stands now."""
        return self._ledger.view()

    @workflow.query
    def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        """What a lane may know of its tickets, in order of arrival."""
        found = (ticket for ticket in self._state.tickets.values() if ticket.submission.lane == lane)
        return tuple(self._in_its_unit(ticket.status) for ticket in found)

    @workflow.update
    def submit(self, submission: Submission) -> TicketStatus:
        """Queue what a lane submitted, or say why not; the same files again change nothing."""
        known = self._state.tickets.get(submission.ticket)
        if known is not None:
            return self._in_its_unit(known.status).model_copy(update={"duplicate": True})
        refused = refusal(submission, self._desk(submission.lane), workflow.now().timestamp())
        if refused is None:
            self._ledger.record(TicketQueued, submission=submission)
            return self._in_its_unit(self._state.tickets[submission.ticket].status)
        cause, detail = refused
        if not self._state.ended:
            self._ledger.record(
                TicketRejected,
                ticket=submission.ticket,
                lane=submission.lane,
                cause=cause,
                detail=detail,
                submission=submission,
            )
        status = TicketStatus(ticket=submission.ticket, state=TicketState.REJECTED, cause=cause, detail=detail)
        return self._in_its_unit(status)

    @submit.validator
    def _may_submit(self, submission: Submission) -> None:
        if self._request.plan.lane(submission.lane) is None:
            raise ApplicationError(f"the plan has no lane {submission.lane}", type="UnknownLane")
        known = self._state.tickets.get(submission.ticket)
        if known is not None and known.submission.digest != submission.digest:
            raise ApplicationError(f"{submission.ticket} stands for other files", type="TicketTaken")

    async def _pursue(self, request: RoundRequest) -> Ending:
        self._ledger.record(
            RoundStarted,
            run=request.run,
            repo=request.repo,
            plan=request.plan,
            plan_digest=request.plan.digest,
            promote=request.promote,
        )
        prepared = await self._steps.prepare()
        if prepared.refused:
            return Ending(RunStatus.FAILED, prepared.refused)
        if prepared.incumbent is None or prepared.tree is None:
            return failed(RunReason.INTERNAL, detail="the host prepared no incumbent")
        self._ledger.record(
            RoundReady,
            store=prepared.store,
            incumbent=prepared.incumbent,
            tree=prepared.tree,
            baseline=prepared.baseline,
            sandbox=prepared.sandbox,
            warnings=prepared.warnings,
        )
        if unfit := await self._guard.qualify():
            return Ending(RunStatus.FAILED, unfit)
        await together(self._lanes(), self._queue.serve())
        await land(self._ledger, self._steps, self._trials)
        return await self._conclude(request)

    async def _lanes(self) -> None:
        await together(*(self._lane(index, lane) for index, lane in enumerate(self._request.plan.lanes, 1)))
        self._queue.close()

    async def _lane(self, index: int, lane: LanePlan) -> None:
        steps = LaneSteps(
            plan=self._request.plan,
            lane=lane,
            attempt=AttemptKey(run=self._request.run, iteration=LANES, candidate=index, binding=index),
            host=self._request.host,
            store=self._state.store,
            sandbox=self._state.sandbox,
            deadline=self._state.lane_deadline(lane.id),
        )
        await run_lane(self._ledger, self._state.lanes[lane.id], steps)

    async def _conclude(self, request: RoundRequest) -> Ending:
        """Record what the round found, and bring a new incumbent to where it was asked to."""
        decided = self._state.decided
        incumbent = decided.incumbent if decided else None
        record = await self._record(incumbent)
        if record.moved is not None:
            return failed(RunReason.OVERTAKEN, by=record.moved[:12])
        if incumbent is None:
            return failed(
                RunReason.NO_GAIN, measured=sum(t.evaluation is not None for t in self._state.tickets.values())
            )
        if request.promote.mode is PromoteMode.NONE:
            return succeeded()
        promotion = await self._steps.promote(self._state.known_incumbent[0], incumbent)
        self._ledger.record(RunPromoted, promotion=promotion)
        if promotion.refused:
            return failed(RunReason.PROMOTION_REFUSED, why=promotion.refused.code.value, **promotion.refused.data)
        return succeeded()

    async def _record(self, incumbent: Sha | None) -> RoundRecord:
        """Write down what the round says of its entries."""
        self._recorded = True
        at = workflow.now().isoformat(timespec="seconds")
        rows = revisions(self._request.plan, self._request.run, self._state.closed, at)
        record = await self._steps.record(rows, incumbent)
        self._ledger.record(RoundRecorded, record=record)
        return record

    async def _keep_what_was_learnt(self) -> None:
        """A round that is cut short says what its measurements showed, too: nobody pays for that twice."""
        if self._recorded or all(ticket.evaluation is None for ticket in self._state.tickets.values()):
            return
        try:
            await self._record(None)
        except ActivityError as error:
            workflow.logger.warning("round not recorded", extra={"run": self._request.run, "why": str(error.cause)})

    async def _end(self, ending: Ending) -> None:
        await self._keep_what_was_learnt()
        self._ledger.record(RunEnded, status=ending.status.value, reason=ending.reason, usage=self._state.usage)
        workflow.upsert_search_attributes([STATUS.value_set(ending.status)])
        try:
            await self._steps.close()
        except ActivityError as error:
            workflow.logger.warning("run not closed", extra={"run": self._request.run, "why": str(error.cause)})
        await workflow.wait_condition(workflow.all_handlers_finished)

    def _desk(self, lane: str) -> Desk:
        plan = self._request.plan.lane(lane)
        mine = [ticket for ticket in self._state.tickets.values() if ticket.submission.lane == lane]
        return Desk(
            distinct=sum(ticket.cause is not Cause.CAP for ticket in mine),
            cap=plan.submissions if plan else 0,
            deadline=self._state.lane_deadline(lane),
            open=self._state.taking,
        )

    def _in_its_unit(self, status: TicketStatus) -> TicketStatus:
        return status.model_copy(update={"unit": self._request.plan.metric.unit})
