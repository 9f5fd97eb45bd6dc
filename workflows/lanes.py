"""One lane of a round: its workspace, the launches of its agent within its budget, and the watch over its outbox.

A component of the round's workflow, as an iteration is of a goal run's. What costs anything is recorded in the round's
ledger before it is begun, so that no death of a worker or of the engine loses a charge or makes one twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

from .claiming import failure_detail
from .lane_state import LaneState
from .lane_steps import LaneSteps
from .model.attempt import AgentReport
from .model.event import Event
from .model.exit import ExitKind
from .model.outcome import Outcome, OutcomeKind, Session
from .model.round.event import (
    BindingCancelled,
    BindingClaimed,
    BindingReserved,
    BindingSettled,
    LaneEnded,
    LaneReady,
    LaneResumed,
    LaneStarted,
    LaneWaiting,
)
from .model.round.lane import LaneBinding, LaneEnd, TakenIn
from .model.usage import Usage
from .rules import lane_budget
from .rules.outcome import OVERDUE, POLICIES, judge, retry_at
from .rules.sessions import own_session
from .stopping import ended_by_request, pause, raise_if_cancelled, stopped, to_its_end

E = TypeVar("E", bound=Event)

SLOT_KEPT_S = 10.0
"""Seconds of rest for which a lane keeps its slot; in a longer one others may work."""

WELL = frozenset({OutcomeKind.DONE, OutcomeKind.NO_CHANGE, OutcomeKind.EMPTY_ANSWER})
"""After these the agent has nothing more to do: what it submitted counts, not what it says."""

NOTHING = Usage(tokens_in=0, tokens_out=0, usd=0.0)
"""What an agent is known to have used that never ran."""

LATE = "the lane's deadline passed before its agent was launched"
NO_ROOM = "the lane's deadline passed before there was a slot"


class Records(Protocol):
    """The round's ledger, as far as a lane needs it: each event is folded into the lane's state at once."""

    def record(self, kind: type[E], **facts: Any) -> E:
        """Append an event."""
        ...


class Stop(NamedTuple):
    """Why a lane stops, with the fact behind it."""

    end: LaneEnd
    detail: str = ""


async def run_lane(ledger: Records, state: LaneState, steps: LaneSteps) -> None:
    """Run a lane to its end; its `LaneEnded` is in the ledger then, and nothing of it is left on its host.

    A cancellation, of the workflow or of the task that this runs in, is raised once all is cleared away.
    """
    lane = _Lane(ledger, state, steps)
    stop = await lane.work()
    end, detail = await to_its_end(lane.leave(stop))
    ledger.record(LaneEnded, lane=state.plan.id, end=end, detail=detail[:500])
    raise_if_cancelled()


class _Lane:
    """A lane at work; what decides about a charge is in its state alone."""

    def __init__(self, ledger: Records, state: LaneState, steps: LaneSteps) -> None:
        self._ledger, self._state, self._steps = ledger, state, steps
        self._watch: asyncio.Task[TakenIn] | None = None
        self._here = False
        self._session: Session | None = None
        self._ends: Counter[OutcomeKind] = Counter()

    async def work(self) -> Stop:
        """Launch the agent, and again as long as there is reason and leave to."""
        self._record(LaneStarted, attempt=self._steps.attempt, deadline=self._steps.deadline)
        try:
            while True:
                raise_if_cancelled()
                binding = self._offer()
                if isinstance(binding, LaneEnd):
                    return Stop(binding, _words(self._state.outcome))
                self._record(BindingReserved, binding=binding)
                if stop := await self._attempt(binding):
                    return stop
        except (ActivityError, asyncio.CancelledError) as error:
            end = LaneEnd.CANCELLED if ended_by_request(error) else LaneEnd.BROKEN
            return Stop(end, failure_detail(error))

    async def leave(self, stop: Stop) -> Stop:
        """End the watch, take in what was submitted last, and give everything back."""
        try:
            if self._watch is not None:
                self._watch.cancel()
                await workflow.wait([self._watch])
                if stop.end is not LaneEnd.CANCELLED:
                    await self._steps.take_in(once=True)
        except ActivityError as error:
            stop = stop if stop.end is LaneEnd.BROKEN else Stop(LaneEnd.BROKEN, f"intake: {failure_detail(error)}")
        try:
            await self._steps.close()
        except ActivityError as error:
            facts = {"lane": self._state.plan.id, "why": failure_detail(error)}
            workflow.logger.warning("lane not closed", extra=facts)
        return stop

    async def _attempt(self, binding: LaneBinding) -> Stop | None:
        """Launch the agent once, by a binding of its own; a stop when that was the last launch."""
        try:
            stop = await self._prepared()
        except (ActivityError, asyncio.CancelledError) as error:
            self._record(BindingCancelled, ordinal=binding.ordinal, why=failure_detail(error))
            raise
        if stop:
            self._record(BindingCancelled, ordinal=binding.ordinal, why=stop.detail)
            return stop
        self._record(BindingClaimed, ordinal=binding.ordinal)
        report = await self._launched(binding)
        raise_if_cancelled()
        return self._flaw() or await self._following(report)

    async def _prepared(self) -> Stop | None:
        """Have a slot and the workspace, and time left; a stop when the agent cannot be launched now."""
        if not self._here and (stop := await self._opened()):
            return stop
        raise_if_cancelled()
        return Stop(LaneEnd.DEADLINE, LATE) if lane_budget.late(_now(), self._steps.deadline) else None

    async def _opened(self) -> Stop | None:
        again = self._state.opened is not None
        opened = await self._steps.open()
        if not again:
            self._record(LaneReady, opened=opened)
        if opened.path is None:
            return Stop(LaneEnd.DEADLINE if again else LaneEnd.NOT_OPENED, NO_ROOM)
        if opened.failed:
            return Stop(LaneEnd.NOT_OPENED, opened.detail)
        self._here = True
        self._watch = self._watch or asyncio.ensure_future(self._steps.take_in(once=False))
        return None

    async def _launched(self, binding: LaneBinding) -> AgentReport:
        """Launch the agent and settle; one that may not be launched yet waits with the same binding."""
        while True:
            report = await self._agent(binding)
            again = self._again(report.blocked) if report.blocked else None
            if report.blocked is None or again is None or stopped():
                break
            try:
                await self._rest(report.blocked, again)
                if await self._prepared():
                    break
            except (ActivityError, asyncio.CancelledError):
                self._settle(binding, report)  # it is known that nothing was launched
                raise
        self._settle(binding, report)
        return report

    async def _agent(self, binding: LaneBinding) -> AgentReport:
        """Run the agent; it is ended when it is to stop, or nobody takes in any more what it submits."""
        prompt = self._state.opened.prompt if self._state.opened else ""
        agent = asyncio.ensure_future(self._steps.run_agent(binding, prompt, self._session))
        waited = [task for task in (agent, self._watch) if task is not None]
        with suppress(asyncio.CancelledError):  # heard again once it is known what the agent used
            await workflow.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not agent.done() and (stopped() or self._flaw()):
            agent.cancel()
        return await agent

    def _settle(self, binding: LaneBinding, report: AgentReport) -> None:
        outcome = _outcome(report)
        usage = NOTHING if report.exit.kind is ExitKind.NOT_STARTED else report.usage
        facts = {"usage": usage, "exit": report.exit, "outcome": outcome, "message": report.message}
        self._record(BindingSettled, ordinal=binding.ordinal, **facts)
        if not POLICIES[outcome.kind].retries:
            self._session = None
        elif report.session or report.lost_session:  # else it did not get as far as to begin one
            spec, name = self._state.plan.agent, self._steps.attempt.name
            self._session = own_session(spec, report.session, name, report.session_used)

    async def _following(self, report: AgentReport) -> Stop | None:
        """What follows a launch: a stop, or after a rest, if the provider asks for one, the next launch."""
        outcome = _outcome(report)
        if stop := _final(report, outcome):
            return stop
        if self._ends[outcome.kind] >= POLICIES[outcome.kind].retries:
            return None
        again, offered = self._again(outcome), self._offer()
        if again is None:
            return Stop(LaneEnd.DEADLINE, _words(outcome))
        if isinstance(offered, LaneEnd):
            return Stop(offered, _words(outcome))
        self._ends[outcome.kind] += 1
        await self._rest(outcome, again)
        return None

    async def _rest(self, outcome: Outcome, until: float) -> None:
        """Wait for the provider, by a durable timer; a slot that is given back meanwhile is asked for again later."""
        self._record(LaneWaiting, outcome=outcome, until=until)
        left = max(0.0, until - _now())
        if left > SLOT_KEPT_S:
            self._here = False
            await self._steps.yield_slot()
        lane, what = self._state.plan.id, outcome.kind.value.replace("_", " ")
        await pause(left, f"lane {lane}: {what}: wait for the provider")
        self._record(LaneResumed)

    def _offer(self) -> LaneBinding | LaneEnd:
        state = self._state
        return lane_budget.offer(
            state.ledger, state.plan, state.round_digest, now=_now(), deadline=self._steps.deadline
        )

    def _again(self, outcome: Outcome) -> float | None:
        return retry_at(outcome, before=self._ends[outcome.kind], now=_now(), deadline=self._steps.deadline)

    def _flaw(self) -> Stop | None:
        """Why nothing is taken in any more, when the watch ended by a fault."""
        watch = self._watch
        error = watch.exception() if watch is not None and watch.done() else None
        return Stop(LaneEnd.BROKEN, f"intake: {failure_detail(error)}") if error else None

    def _record(self, kind: type[E], **facts: Any) -> None:
        self._ledger.record(kind, lane=self._state.plan.id, **facts)


def _outcome(report: AgentReport) -> Outcome:
    return report.blocked or judge(report.exit, report.account, report.limit)


def _final(report: AgentReport, outcome: Outcome) -> Stop | None:
    """Why no launch follows this one, whatever the budget."""
    if outcome.kind in WELL:
        return Stop(LaneEnd.DONE, report.message)
    if outcome.kind is OutcomeKind.TIMED_OUT and (report.blocked or report.exit.detail == OVERDUE):
        return Stop(LaneEnd.DEADLINE, _words(outcome))  # said by its host: our own time may lag behind after a crash
    return Stop(LaneEnd.AGENT_UNUSABLE, _words(outcome)) if POLICIES[outcome.kind].fatal else None


def _words(outcome: Outcome | None) -> str:
    return f"{outcome.kind.value.replace('_', ' ')}: {outcome.detail}".rstrip(": ") if outcome else ""


def _now() -> float:
    return workflow.now().timestamp()
