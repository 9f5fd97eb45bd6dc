"""Rounds by chance: whatever is slow, busy, broken or cancelled, no ticket is lost and everything comes to an end."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from orch.workflows.model.event import RunEnded
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.event import (
    GuardMeasured,
    LaneEnded,
    LaneStarted,
    RoundDecided,
    TicketMeasured,
    TicketPutBack,
    TicketQueued,
    TicketRejected,
    TicketTaken,
)
from orch.workflows.model.round.lane import Built
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Validated

from .one_round import OneRound
from .round_host import LaneDesk
from .round_plans import INCUMBENT, plan, sha

pytestmark = [pytest.mark.engine]

Make = Callable[..., Awaitable[OneRound]]

MAY_BREAK = {"open_lane", "build_trial", "measure_pairs", "validate_outputs", "compose_step"}


@dataclass
class Chance:
    """What may happen in a round, by its number.

    Attributes:
        dice: decides everything.
        trouble: how likely each kind of trouble is.
    """

    dice: random.Random
    trouble: float

    def happens(self, share: float = 1.0) -> bool:
        """Whether a kind of trouble comes now."""
        return self.dice.random() < self.trouble * share

    def agent(self, count: int) -> Callable[[LaneDesk], Awaitable[None]]:
        """Hands over so much, with pauses."""

        async def work(desk: LaneDesk) -> None:
            for number in range(count):
                await asyncio.sleep(self.dice.random() * 0.1)
                await desk.submit(str(number))

        return work

    def hook(self, one: OneRound) -> Callable[[str, Any], Awaitable[Any]]:
        """What becomes of a step."""

        async def happen(name: str, request: Any) -> Any:
            await asyncio.sleep(self.dice.random() * 0.05)
            if name in MAY_BREAK and self.happens(0.05):
                raise ValueError("broken")
            if name == "build_trial" and request.candidate != INCUMBENT and self.happens(0.3):
                return Built(failed=Cause.SMOKE_FAILED, side=self.dice.choice(("base", "candidate")))
            if name == "measure_pairs" and self.happens():
                return one.host.measured(request, pairs=(), busy="taken")
            if name == "measure_pairs" and request.candidate == INCUMBENT and self.happens(0.5):
                return one.host.measured(request.model_copy(update={"candidate": sha("a 0")}))
            if name == "validate_outputs" and self.happens(0.2):
                return Validated(invalid=Exit(kind=ExitKind.FAILED, number=1), side="candidate")
            return None

        return happen


async def by_chance(a_round: Make, number: int) -> OneRound:
    """Run the round of that number to its end; every third is cancelled at some time."""
    chance = Chance(random.Random(number), trouble=(0.0, 0.1, 0.4)[number % 3])
    lanes, devices = "abcd"[: chance.dice.randint(1, 4)], ("x", "y", "z")[: chance.dice.randint(1, 3)]
    agents = {lane: chance.agent(chance.dice.randint(0, 5)) for lane in lanes}
    factors = {f"{lane} {n}": chance.dice.uniform(0.7, 1.1) for lane in "abcd" for n in range(5)} | {"a 0": 0.8}
    facts: dict[str, Any] = {"aa_every": chance.dice.randint(1, 4), "deadline_s": chance.dice.choice((3.0, 60.0))}
    one = await a_round(plan(*lanes, devices=devices, **facts), agents, factors=factors)
    one.host.hook = chance.hook(one)
    await one.start()
    async with one.worker():
        if number % 4 == 1:
            await asyncio.sleep(chance.dice.uniform(0.1, 3.0))
            await one.handle.cancel()
        with contextlib.suppress(WorkflowFailureError):
            await one.handle.result()
    return one


def sound(one: OneRound) -> None:
    """What holds however a round ends."""
    last = one.events[-1]
    assert isinstance(last, RunEnded)
    assert [event.seq for event in one.events] == list(range(1, len(one.events) + 1))
    assert {event.lane for event in one.all(LaneStarted)} == {event.lane for event in one.all(LaneEnded)}
    assert not one.host.left_at_work
    assert one.host.did[-1][0] == "close_run"
    assert all(one.host.most[device.name] <= 1 for device in one.request.plan.devices)
    measured = Counter(event.ticket for event in one.all(TicketMeasured))
    rejected = Counter(event.ticket for event in one.all(TicketRejected))
    assert set((measured + rejected).values()) <= {1}
    taken = Counter(event.ticket for event in one.all(TicketTaken))
    back = Counter(event.ticket for event in one.all(TicketPutBack))
    assert all(taken[name] == back[name] + 1 for name in measured)
    assert last.reason is not None
    if last.reason.code in {RunReason.DONE, RunReason.NO_GAIN}:
        queued = {event.submission.ticket for event in one.all(TicketQueued)}
        assert queued <= set(measured + rejected)
        assert one.only(RoundDecided)
        _guarded(one)


def _guarded(one: OneRound) -> None:
    """No device set took more than k tickets between two measurements of the incumbent against itself."""
    since: Counter[str] = Counter()
    for event in one.events:
        if isinstance(event, GuardMeasured):
            since[event.measurement.device] = 0
        elif isinstance(event, TicketMeasured):
            since[event.measurement.device] += 1
            assert since[event.measurement.device] <= one.request.plan.aa_every


@pytest.mark.parametrize("number", range(2))
async def test_round_by_chance_is_sound(a_round: Make, number: int) -> None:
    sound(await by_chance(a_round, number))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(2, 300))
async def test_many_rounds_by_chance_are_sound(a_round: Make, number: int) -> None:
    sound(await by_chance(a_round, number))
