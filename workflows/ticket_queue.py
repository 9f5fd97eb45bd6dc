"""The measurement queue of a round: for each device set a line of three, who build, measure and validate.

While one trial is measured the next one is built, and what the last one left is validated, so that a device waits for
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

from .guard import Guard
from .model.round.event import DeviceTurned, TicketMeasured, TicketPutBack, TicketRejected, TicketTaken
from .model.round.ticket import Cause, TicketState
from .model.round.trial import Measurement, Noise
from .round_steps import RoundLedger, RoundSteps
from .rules.paired import evaluate
from .rules.round_robin import next_in_turn
from .stopping import ended_by_request, pause, raise_if_cancelled, together
from .trials import LONGEST_PAUSE_S, PAUSE_S, Trial, Trials

T = TypeVar("T")

LATE = "it was not measured before the round's deadline"


@dataclass(frozen=True)
class _Built:
    """A trial that was built: of a ticket, or of the guard when there is none."""

    trial: Trial
    ticket: str = ""


@dataclass(frozen=True)
class _Measured:
    """A ticket's trial that was measured, and the noise of its device set at that time."""

    trial: Trial
    ticket: str
    found: Measurement
    noise: Noise


@dataclass(frozen=True)
class _Line:
    """The line of a device set, from one to the next; None ends it.

    Attributes:
        device: the device set's name.
        room: what is built ahead, one at a time.
        built: for who measures.
        measured: for who validates; one may wait, for more the device does.
    """

    device: str
    room: asyncio.Semaphore = field(default_factory=asyncio.Semaphore)
    built: asyncio.Queue[_Built | None] = field(default_factory=asyncio.Queue)
    measured: asyncio.Queue[_Measured | None] = field(default_factory=lambda: asyncio.Queue(1))


class TicketQueue:
    """Measures the tickets of a round on its device sets, the lanes in turn."""

    def __init__(self, ledger: RoundLedger, steps: RoundSteps, trials: Trials, guard: Guard) -> None:
        self._ledger = ledger
        self._state = ledger.state
        self._steps = steps
        self._trials = trials
        self._guard = guard
        self._closing = False
        self._resting: set[str] = set()
        self._pauses: dict[str, float] = {}

    async def serve(self) -> None:
        """Measure until no ticket can come any more and none waits, or the round's deadline has passed."""
        await together(*(self._serve(device.name) for device in self._state.known_plan.devices))
        for _, ticket in self._state.queued:
            self._reject(ticket, Cause.ROUND_OVER, LATE)

    def close(self) -> None:
        """No ticket comes any more."""
        self._closing = True

    async def _serve(self, device: str) -> None:
        line = _Line(device)
        await together(self._build_ahead(line), self._measure_all(line), self._validate_all(line))

    async def _build_ahead(self, line: _Line) -> None:
        """Build one trial for as long as another one is measured; a ticket waits for its turn until then."""
        item: _Built | None
        since = 0
        while await _had(line.room) and await self._work(line.device):
            if since >= self._state.known_plan.aa_every:
                item, since = _Built(await self._guard.build()), 0
            else:
                item, since = await self._built(line.device), since + 1
            if item is not None:
                await line.built.put(item)
            else:
                line.room.release()
        await line.built.put(None)

    async def _built(self, device: str) -> _Built | None:
        state = self._state
        name = next_in_turn(state.queued, [lane.id for lane in state.known_plan.lanes], state.last) or ""
        key, commit = self._steps.next_key(), state.tickets[name].submission.commit or ""
        self._ledger.record(TicketTaken, ticket=name, device=device, measurement=key.binding)
        trial = await self._alone(name, self._trials.build(state.known_incumbent[0], commit, name, key))
        return None if trial is None else _Built(trial, name)

    async def _measure_all(self, line: _Line) -> None:
        while (item := await _next(line.built)) is not None:
            ahead = self._may_build_beside(item, line.device)
            if ahead:
                line.room.release()
            await self._deal_with(line, item)
            if not ahead:
                line.room.release()
        await line.measured.put(None)

    def _may_build_beside(self, item: _Built, device: str) -> bool:
        """A device set that is busy or may be found to drift would keep a ticket from those that are free."""
        alone = len(self._state.known_plan.devices) == 1
        return device not in self._pauses and (alone or bool(item.ticket))

    async def _deal_with(self, line: _Line, item: _Built) -> None:
        """Measure what was built, or say why it is not measured."""
        if item.ticket and item.trial.built.failed and item.trial.built.side == "candidate":
            self._reject(item.ticket, item.trial.built.failed, item.trial.built.detail)
        elif self._late():
            await self._give_up(item)
        elif not item.ticket:
            self._turn(line.device, item)
            await self._guard.check(item.trial, line.device)
        else:
            await self._measure(line, item)

    async def _give_up(self, item: _Built) -> None:
        """The round's deadline passed before what was built could be measured."""
        if item.ticket:
            self._reject(item.ticket, Cause.ROUND_OVER, LATE)
        await self._trials.drop(item.trial)

    async def _measure(self, line: _Line, item: _Built) -> None:
        self._turn(line.device, item)
        pairs = self._trials.run_pairs(item.trial, line.device, deadline=self._state.deadline)
        found = await self._alone(item.ticket, pairs)
        if found is None:
            return
        if found.busy:
            await self._put_back(line.device, item, found.busy)
            return
        self._pauses.pop(line.device, None)
        self._turn(line.device, None)
        await line.measured.put(_Measured(item.trial, item.ticket, found, self._state.noise[line.device]))

    def _turn(self, device: str, item: _Built | None) -> None:
        """Record what the device set is at now, None for nothing."""
        facts = {"ticket": item.ticket or None, "measurement": item.trial.subject.key.binding} if item else {}
        self._ledger.record(DeviceTurned, device=device, **facts)

    async def _validate_all(self, line: _Line) -> None:
        """Give each ticket its verdict, once no output is in doubt."""
        plan = self._state.known_plan
        while (item := await _next(line.measured)) is not None:
            found = await self._alone(item.ticket, self._trials.validate(item.trial, item.found))
            if found is None:
                continue
            evaluation = evaluate(found, plan.metric, plan.gates, item.noise)
            lane = self._lane(item.ticket)
            self._ledger.record(TicketMeasured, ticket=item.ticket, lane=lane, measurement=found, evaluation=evaluation)

    async def _put_back(self, device: str, item: _Built, why: str) -> None:
        """A busy device set rests for a while; its ticket goes to whichever is free first."""
        rest = self._pauses[device] = min(2 * self._pauses.get(device, PAUSE_S / 2), LONGEST_PAUSE_S)
        self._resting.add(device)
        await self._trials.drop(item.trial)
        self._ledger.record(TicketPutBack, ticket=item.ticket, device=device, why=why)
        await pause(min(rest, self._left()), f"{device}: {why}")
        self._resting.discard(device)

    async def _alone(self, ticket: str, step: Coroutine[Any, Any, T]) -> T | None:
        """Do a step of a ticket. What the host cannot do costs this ticket, and not the round; None then."""
        try:
            return await step
        except ActivityError as error:
            if ended_by_request(error):
                raise
            self._reject(ticket, Cause.HOST_FAULT, str(error.cause)[:500])
            return None

    def _reject(self, ticket: str, cause: Cause, detail: str) -> None:
        self._ledger.record(TicketRejected, ticket=ticket, lane=self._lane(ticket), cause=cause, detail=detail)

    def _lane(self, ticket: str) -> str:
        return self._state.tickets[ticket].submission.lane

    async def _work(self, device: str) -> bool:
        """Wait for a ticket to take; False when there will be none. Another device set's builder may be faster."""
        while not self._may_take(device):
            raise_if_cancelled()
            left = self._left()
            if not left or self._over():
                return False
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._may_take(device) or self._over(),
                    timeout=timedelta(seconds=left),
                    timeout_summary="the round's deadline",
                )
        return not self._late()

    def _may_take(self, device: str) -> bool:
        return bool(self._state.queued) and device not in self._resting

    def _over(self) -> bool:
        """Whether every ticket has its verdict; one that is being measured may still be put back."""
        open_ = {TicketState.QUEUED, TicketState.MEASURING}
        return self._closing and not any(ticket.state in open_ for ticket in self._state.tickets.values())

    def _late(self) -> bool:
        return not self._left()

    def _left(self) -> float:
        """Seconds until the round's deadline."""
        return max(0.0, self._state.deadline - workflow.now().timestamp())


async def _had(room: asyncio.Semaphore) -> bool:
    """Wait for room; a cancellation that a step before has swallowed is heard."""
    raise_if_cancelled()
    return await room.acquire()


async def _next(items: asyncio.Queue[T | None]) -> T | None:
    """Wait for what comes down the line; as before."""
    raise_if_cancelled()
    return await items.get()
