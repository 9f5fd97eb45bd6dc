"""One iteration: K attempts from the head, each a child workflow, ranked; the winner's tree is the next head.

A component of a run's workflow and not a workflow of its own: its attempts are the run's children, so that the run has
one ledger, one page with every candidate on it, and one place that spends the budget.
"""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from .attempt import Attempt
from .details import agent_label
from .host import ORCH_QUEUE, host_queue
from .ledger import GoalLedger
from .model.attempt import AttemptKey, AttemptRequest, SpendCaps
from .model.candidate import Candidate, Failure
from .model.event import AttemptReplaced, AttemptStarted, CandidateMeasured, IterationDecided, IterationStarted
from .model.goal import GoalRequest
from .rules import budget
from .rules.crew import assign
from .rules.feedback import feedback
from .rules.sessions import Start, starts
from .rules.tournament import rank
from .run_steps import RunSteps, exchange
from .stopping import ended_by_request


async def run_iteration(request: GoalRequest, ledger: GoalLedger, steps: RunSteps, count: int) -> None:
    """Let `count` candidates compete from the head and move the head to the winner.

    Everything is recorded in the ledger as it comes; a cancellation is raised once every attempt has cleaned up.
    """
    state = ledger.state
    commit, tree = state.known_head
    ordinal, first = state.ordinal + 1, len(state.budget.bindings) + 1
    text = _feedback(ledger)
    begin = starts(state.lead, request.session, assign(request.agents, state.failed, count))
    keys = tuple(
        AttemptKey(run=request.run, iteration=ordinal, candidate=i + 1, binding=first + i) for i in range(count)
    )
    ledger.record(IterationStarted, ordinal=ordinal, commit=commit, tree=tree, attempts=keys)
    attempts = [_request(request, ledger, key, begin[key.candidate], text) for key in keys]
    await asyncio.gather(*(_attempt(ledger, attempt) for attempt in attempts))
    _select(ledger)
    await steps.move_head(commit)


async def _attempt(ledger: GoalLedger, request: AttemptRequest) -> None:
    """Run a candidate to its end, if need be anew on another host, and record it."""
    for _ in range(request.placement.replacements):
        candidate = await _run(ledger, request)
        if not _replaceable(ledger, request, candidate):
            break
        key = request.attempt.model_copy(update={"binding": len(ledger.state.budget.bindings) + 1})
        ledger.record(AttemptReplaced, lost=candidate, attempt=key, agent=request.agent)
        request = request.model_copy(update={"attempt": key})
    else:
        candidate = await _run(ledger, request)
    ledger.record(CandidateMeasured, candidate=candidate)


async def _run(ledger: GoalLedger, request: AttemptRequest) -> Candidate:
    key, agent = request.attempt, request.agent
    try:
        handle = await workflow.start_child_workflow(
            Attempt.run,
            request,
            id=f"{key.run}/{key.name}",
            task_queue=ORCH_QUEUE if request.exchange else host_queue(request.host),
            static_summary=f"candidate {key.candidate}: {agent_label(agent)}",
            parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
            cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        ledger.record(AttemptStarted, attempt=key, agent=agent)
        return await handle
    except (ChildWorkflowError, asyncio.CancelledError) as error:
        return _lost(key, agent, error)


def _replaceable(ledger: GoalLedger, request: AttemptRequest, lost: Candidate) -> bool:
    """Whether an attempt whose host was lost is begun anew: while the run's time, money and operator allow it."""
    state = ledger.state
    if not request.exchange or lost.failure is not Failure.HOST_LOST or workflow.cancellation_reason() is not None:
        return False
    late = state.deadline is not None and workflow.now().timestamp() >= state.deadline
    return not late and budget.affordable(state.budget, state.caps, 1) > 0


def _request(request: GoalRequest, ledger: GoalLedger, key: AttemptKey, begin: Start, text: str) -> AttemptRequest:
    state = ledger.state
    return AttemptRequest(
        attempt=key,
        agent=begin.agent,
        host=request.host,
        store=state.store,
        commit=state.known_head[0],
        contract=state.known_contract,
        feedback=text,
        notes=tuple(state.notes),
        deadline=state.deadline,
        limit_s=state.caps.attempt_s,
        sandbox=state.sandbox,
        session=begin.session,
        fork=begin.fork,
        origin=begin.origin,
        template=request.template,
        spend=SpendCaps(tokens=state.caps.tokens, usd=state.caps.usd),
        placement=request.placement,
        exchange=exchange(request, state.store),
    )


def _lost(key: AttemptKey, agent: str, error: BaseException) -> Candidate:
    cancelled = ended_by_request(error)
    cause = error.cause if isinstance(error, ChildWorkflowError) else None
    return Candidate(
        attempt=key,
        agent=agent,
        failure=Failure.CANCELLED if cancelled else Failure.INTERNAL,
        failure_detail="cancelled" if cancelled else str(cause or error)[:500],
    )


def _select(ledger: GoalLedger) -> None:
    state = ledger.state
    ranking = rank(state.contenders())
    winner = state.candidates.get(ranking.winner)
    commit, tree = state.known_head
    if winner is not None and winner.snapshot is not None:
        commit, tree = winner.snapshot.commit, winner.snapshot.tree
    ledger.record(IterationDecided, ordinal=state.ordinal, ranking=ranking, commit=commit, tree=tree)


def _feedback(ledger: GoalLedger) -> str:
    state = ledger.state
    if not state.history:
        return ""
    return feedback(
        head=state.failing_verdict,
        candidates=tuple(state.candidates[i] for i in sorted(state.candidates)),
        ranking=state.ranking,
        review=state.reviews.get(state.known_head[1]),
    )
