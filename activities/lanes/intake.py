"""The `take_in` activity: what a lane hands over, from its outbox into the round."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from ...workflows.model.round.lane import TakeIn, TakenIn
from ...workflows.model.round.ticket import Cause, Submission, TicketStatus
from .. import clock
from ..attempts import CLOSED
from ..effect import effect, in_thread
from ..home import Home
from ..store import Store
from .board import Board
from .desk import OUTBOX, TAKEN
from .records import Records, Taken
from .round_door import EngineRound, RoundDoor, UnansweredError, rejected
from .taking import Taker

POLL_S, LOOK_S, REST = 0.05, 1.0, 10.0
"""Seconds between looks at the outbox's time, and between looks into it; a long look is rested from so much longer."""

PASSES = 10
"""How often one look begins again while it finds something."""

MIRROR_S = 2.0
"""Seconds between questions about the lane's tickets, as long as one is not final."""

SPARE = 20
"""Submissions over the plan's number that the round still hears of: its ledger shall show them, but has an end."""

PATIENCE_S, LONGEST_S = 0.5, 10.0
"""Before a round that did not answer is asked again: at first, and at most."""

log = structlog.get_logger()


class Intake:
    """Takes in what lanes hand over."""

    def __init__(self, home: Home, door: Callable[[str], RoundDoor] = EngineRound) -> None:
        self._home = home
        self._door = door

    @effect
    async def take_in(self, request: TakeIn) -> TakenIn:
        """Watch a lane's outbox and submit what is new in it to the round, until it is cancelled."""
        folder = self._home.attempt(request.attempt)
        if not folder.is_dir() or (folder / CLOSED).exists():
            return TakenIn()
        records = Records(folder / TAKEN)
        async with _alone(records):
            lane = LaneIntake(self._home, request, self._door(request.attempt.run), records)
            await lane.resume()
            if request.once:
                await lane.look()
            else:
                await lane.watch()
            return TakenIn(tickets=tuple(lane.tickets))


class LaneIntake:
    """One lane's outbox, and what became of it."""

    def __init__(self, home: Home, request: TakeIn, door: RoundDoor, records: Records) -> None:
        self.tickets: list[str] = []
        self._door = door
        self._records = records
        self._board = Board(home.attempt(request.attempt))
        self._taker = Taker(Store(home, request.store), request.attempt.run, request.plan, request.lane)
        self._deadline = request.deadline + clock.offset()
        plan = request.plan.lane(request.lane)
        self._room = SPARE + (plan.submissions if plan else 0)
        self._log = log.bind(run=request.attempt.run, lane=request.lane)

    async def resume(self) -> None:
        """Submit what an earlier worker took in and did not; know the rest."""
        for taken in await in_thread(self._records.all):
            if taken.answer is None:
                await self._submit(taken.submission)
            else:
                self._room -= 1
                await in_thread(self._board.recall, taken.answer)

    async def watch(self) -> None:
        """Look again and again; ends when it is cancelled."""
        mirroring = asyncio.create_task(self._mirror())
        try:
            while not mirroring.done():
                stamp = self._board.stamp()
                await self._news(stamp, await self.look())
            await mirroring  # it ends by failing alone
        finally:
            mirroring.cancel()

    async def look(self) -> float:
        """Take in what is there, the oldest first; return how long it took to see that nothing is left, in seconds."""
        took = 0.0
        for _ in range(PASSES):
            begun = time.monotonic()
            names = await in_thread(self._board.entries, self._taker.names)
            took = time.monotonic() - begun
            if not names:
                break
            for name in names:
                await self._take(name)
        return took

    async def _take(self, name: str) -> None:
        known = await in_thread(self._records.get, name)
        submission = await in_thread(self._found, name) if known is None and self._room > -SPARE else None
        if submission:
            await in_thread(self._records.put, Taken(submission=submission))
            await self._submit(submission)
        await in_thread(self._board.drop, name)  # last: as long as it lies there, the wrapper knows the ticket

    def _found(self, name: str) -> Submission | None:
        with self._board.opened(OUTBOX) as outbox:
            return self._taker.take(outbox, name, late=time.time() >= self._deadline)

    async def _submit(self, submission: Submission) -> None:
        self._room -= 1
        if self._room < 0:
            answer = rejected(submission, Cause.CAP, "the lane has submitted far more than it may")
        else:
            answer = await self._answer(submission)
        await in_thread(self._records.put, Taken(submission=submission, answer=answer))
        await in_thread(self._board.show, answer)
        self.tickets.append(submission.ticket)
        self._log.info("ticket_submitted", ticket=submission.ticket, state=answer.state, cause=answer.cause)

    async def _answer(self, submission: Submission) -> TicketStatus:
        pause = PATIENCE_S
        while True:
            try:
                return await self._door.submit(submission)
            except UnansweredError as error:
                self._log.warning("round_unanswered", ticket=submission.ticket, why=str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_S)

    async def _news(self, stamp: tuple[int, ...], took: float) -> None:
        """Return when the outbox changed, or may have without a sign of it; not at once after a long look."""
        await asyncio.sleep(max(POLL_S, REST * took))
        until = time.monotonic() + LOOK_S
        while self._board.stamp() == stamp and time.monotonic() < until:  # noqa: ASYNC110 - what changes is a file
            await asyncio.sleep(POLL_S)

    async def _mirror(self) -> None:
        """Tell the lane what becomes of its tickets."""
        while True:
            if not self._board.is_final():
                with suppress(UnansweredError):
                    for status in await self._door.tickets(self._taker.lane):
                        await in_thread(self._board.show, status)
            await asyncio.sleep(MIRROR_S)


@asynccontextmanager
async def _alone(records: Records) -> AsyncIterator[None]:
    """Take in alone: an earlier worker that is thought dead may not be."""
    while True:
        with records.alone() as alone:
            if alone:
                yield
                return
        await asyncio.sleep(PATIENCE_S)
