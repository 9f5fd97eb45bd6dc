"""A goal run: baseline → optional seal → iterations → two keys → promotion."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError

from .ending import Ending, broken, cancelled, failed, succeeded
from .iteration import run_iteration
from .ledger import goal_ledger, slimmed
from .model.attempt import Waiting
from .model.budget import Caps
from .model.event import (
    AttemptResumed,
    AttemptWaiting,
    BaselineMeasured,
    BaselineTaken,
    GateMeasured,
    HeadReviewed,
    LedgerPage,
    NoteAdded,
    RunEnded,
    RunExtended,
    RunPromoted,
    RunStarted,
    SealDecided,
    SealRequested,
)
from .model.goal import GoalRequest
from .model.progress import NextKind
from .model.promotion import PromoteMode
from .model.reason import RunReason
from .model.review import Decision, Extension, Note
from .model.verdict import Verdict
from .model.view import RunStatus, RunView
from .rules import baseline, budget
from .rules.crew import unusable
from .rules.progress import decide
from .rules.stuck import stuck
from .run_steps import RunSteps
from .stopping import ended_by_request, raise_if_cancelled, to_its_end

STATUS = SearchAttributeKey.for_keyword("OrchStatus")


@workflow.defn(name="Goal")
class Goal:
    """Lets agents compete for one goal until the frozen ladder passes and nobody vetoes."""

    @workflow.init
    def __init__(self, request: GoalRequest) -> None:
        self._request = request
        self._ledger = goal_ledger(request.carried)
        self._state = self._ledger.state
        self._steps = RunSteps(request, self._ledger)

    @workflow.run
    async def run(self, request: GoalRequest) -> RunView:
        """Return the run's final view; a cancelled run cleans up first and then ends as cancelled."""
        try:
            ending = await self._pursue(request)
        except (ActivityError, asyncio.CancelledError) as error:
            ending = cancelled() if ended_by_request(error) else self._broken(error)
        await to_its_end(self._end(ending))
        if ending.status is RunStatus.CANCELLED:
            raise asyncio.CancelledError
        return self._ledger.view()

    @workflow.query
    def ledger(self, since: int) -> LedgerPage:
        """The events after `since`, a page at a time."""
        return self._ledger.page(since)

    @workflow.query
    def view(self) -> RunView:
        """The run as it stands now."""
        return self._ledger.view()

    @workflow.signal
    def attempt_waits(self, waiting: Waiting) -> None:
        """An attempt tells that it rests, so that every view of the run can."""
        self._ledger.record(AttemptWaiting, **dict(waiting))

    @workflow.signal
    def attempt_goes_on(self, waiting: Waiting) -> None:
        """An attempt tells that its rest is over."""
        self._ledger.record(AttemptResumed, attempt=waiting.attempt, agent=waiting.agent)

    @workflow.update
    def decide(self, decision: Decision) -> None:
        """Approve or reject the contract; silence is never approval."""
        self._ledger.record(SealDecided, decision=decision)

    @decide.validator
    def _may_decide(self, decision: Decision) -> None:  # noqa: ARG002 - Temporal passes what the update takes
        if self._ledger.view().status is not RunStatus.WAITING:
            raise ApplicationError("the run does not wait for an approval", type="NotWaiting")

    @workflow.update
    def extend(self, extension: Extension) -> Caps:
        """Raise what the run may use, from now on."""
        self._ledger.record(RunExtended, extension=extension)
        return self._state.caps

    @extend.validator
    def _may_extend(self, extension: Extension) -> None:
        if not extension.model_dump(exclude_none=True):
            raise ApplicationError("nothing to extend: name a cap", type="NothingToExtend")
        if extension.max_iterations is not None and extension.max_iterations < self._state.ordinal:
            message = f"iteration {self._state.ordinal} is running already: the cap can not be lower"
            raise ApplicationError(message, type="BelowUsed")

    @workflow.update
    def add_note(self, note: Note) -> int:
        """Leave guidance for the next prompts; return how many notes there are."""
        self._ledger.record(NoteAdded, note=note)
        return len(self._state.notes)

    async def _pursue(self, request: GoalRequest) -> Ending:
        if not request.carried:
            refused = await self._prepare(request) or await self._measure_baseline() or await self._seal(request)
            if refused:
                return refused
        while True:
            ending = await self._iterate(request)
            if ending:
                return ending
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(request.model_copy(update={"carried": slimmed(self._ledger)}))

    async def _prepare(self, request: GoalRequest) -> Ending | None:
        self._ledger.record(
            RunStarted,
            run=request.run,
            repo=request.repo,
            goal=request.contract.goal,
            agents=request.agents,
            caps=request.caps,
            promote=request.promote,
            sign_off=request.sign_off,
        )
        prepared = await self._steps.prepare()
        if prepared.refused:
            return Ending(RunStatus.FAILED, prepared.refused)
        if prepared.baseline is None:
            return failed(RunReason.INTERNAL, detail="the host prepared no baseline")
        self._ledger.record(
            BaselineTaken,
            store=prepared.store,
            **prepared.baseline.model_dump(),
            contract=prepared.contract,
            contract_digest=prepared.contract.digest,
            sandbox=prepared.sandbox,
            warnings=prepared.warnings,
        )
        return None

    async def _measure_baseline(self) -> Ending | None:
        verdict = await self._steps.measure(gate=False)
        self._ledger.record(BaselineMeasured, verdict=verdict)
        reason = baseline.refusal(verdict)
        return Ending(RunStatus.FAILED, reason) if reason else None

    async def _seal(self, request: GoalRequest) -> Ending | None:
        if not request.seal:
            return None
        raise_if_cancelled()
        self._ledger.record(SealRequested, contract_digest=self._state.known_contract.digest)
        workflow.upsert_search_attributes([STATUS.value_set(RunStatus.WAITING)])
        try:
            await workflow.wait_condition(
                lambda: self._state.seal is not None,
                timeout=self._time_left(),
                timeout_summary="the run's deadline",
            )
        except TimeoutError:
            return failed(RunReason.DEADLINE, waiting_for="approval of the contract")
        workflow.upsert_search_attributes([STATUS.value_set(RunStatus.RUNNING)])
        decision = self._state.seal
        if decision is None or not decision.approved:
            return failed(RunReason.SEAL_REJECTED, by=decision.by if decision else "")
        return None

    async def _iterate(self, request: GoalRequest) -> Ending | None:
        raise_if_cancelled()
        state = self._state
        if self._late():
            return failed(RunReason.DEADLINE)
        count = budget.affordable(state.budget, state.caps, state.caps.candidates)
        if count < 1:
            return failed(budget.unaffordable(state.budget, state.caps) or RunReason.INTERNAL)
        await run_iteration(request, self._ledger, self._steps, count)
        gate_passed, vetoed = await self._two_keys(request)
        over = budget.exceeded(state.budget, state.caps)
        following = decide(
            gate_passed=gate_passed,
            vetoed=vetoed,
            stuck=unusable(request.agents, state.failed) or (None if over else stuck(state.history)),
            iterations=state.ordinal,
            caps=state.caps,
            budget_reason=over,
            deadline_passed=self._late(),
        )
        if following.kind is NextKind.DONE:
            return await self._promote(request)
        if following.kind is NextKind.END and following.reason:
            return Ending(RunStatus.FAILED, following.reason)
        return None

    async def _two_keys(self, request: GoalRequest) -> tuple[bool, bool | None]:
        """Whether the gate passes on the head's tree, measured afresh, and whether a reviewer vetoed (None: none)."""
        state = self._state
        if state.head_verdict is None or not state.head_verdict.passed:
            return False, None
        tree = state.known_head[1]
        gate = state.gates.get(tree) or await self._gate()
        if not gate.passed or not request.sign_off:
            return gate.passed, None
        if tree not in state.reviews:
            review = await self._steps.review(gate)
            self._ledger.record(HeadReviewed, ordinal=state.ordinal, tree=tree, review=review)
        return True, not state.reviews[tree].approved

    async def _gate(self) -> Verdict:
        verdict = await self._steps.measure(gate=True)
        self._ledger.record(GateMeasured, ordinal=self._state.ordinal, verdict=verdict)
        return verdict

    async def _promote(self, request: GoalRequest) -> Ending:
        if request.promote.mode is PromoteMode.NONE:
            return succeeded()
        promotion = await self._steps.promote()
        self._ledger.record(RunPromoted, promotion=promotion)
        if promotion.refused:
            return failed(RunReason.PROMOTION_REFUSED, why=promotion.refused.code.value, **promotion.refused.data)
        return succeeded()

    async def _end(self, ending: Ending) -> None:
        usage = self._state.usage
        self._ledger.record(RunEnded, status=ending.status.value, reason=ending.reason, usage=usage)
        workflow.upsert_search_attributes([STATUS.value_set(ending.status)])
        try:
            await self._steps.close()
        except ActivityError as error:
            workflow.logger.warning("run not closed", extra={"run": self._request.run, "why": str(error.cause)})
        await workflow.wait_condition(workflow.all_handlers_finished)

    def _broken(self, error: BaseException) -> Ending:
        return broken(error, begun=self._state.ordinal > 0)

    def _late(self) -> bool:
        deadline = self._state.deadline
        return deadline is not None and workflow.now().timestamp() >= deadline

    def _time_left(self) -> timedelta | None:
        deadline = self._state.deadline
        return None if deadline is None else timedelta(seconds=max(0.0, deadline - workflow.now().timestamp()))
