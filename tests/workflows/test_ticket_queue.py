"""The measurement queue of a round: whose turn it is, who measures, and what happens to what cannot be measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orch.workflows.model.event import Event, RunEnded
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.event import (
    DeviceTurned,
    GuardMeasured,
    LaneEnded,
    PicksMade,
    QueuePaused,
    QueueResumed,
    TicketMeasured,
    TicketPutBack,
    TicketQueued,
    TicketRejected,
    TicketTaken,
)
from orch.workflows.model.round.lane import Built
from orch.workflows.model.round.plan import EntryStatus
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement, Measurement, Validated

from .one_round import OneRound
from .round_host import LaneDesk, RoundHost, gains
from .round_plans import INCUMBENT, plan, sha, ticket

pytestmark = [pytest.mark.engine]

Make = Callable[..., Awaitable[OneRound]]

VALUES = {f"{lane} {number}": 0.9 - number / 100 for lane in ("a", "b") for number in range(8)}


def several(count: int) -> tuple[str, ...]:
    """The names of so many submissions."""
    return tuple(map(str, range(count)))


def is_of_ticket(name: str, request: Any) -> bool:
    """Whether a ticket is measured, not the incumbent against itself."""
    return name == "measure_pairs" and request.candidate != INCUMBENT


def busy(host: RoundHost, device: str, times: int) -> None:
    """The device set is held by others at the first so many tries to measure a ticket there."""
    left = times

    async def hook(name: str, request: Any) -> Measurement | None:
        nonlocal left
        if not is_of_ticket(name, request) or request.device != device or not left:
            return None
        left -= 1
        return host.measured(request, pairs=(), busy="taken")

    host.hook = hook


def order(one: OneRound, *kinds: type[Event]) -> list[type[Event]]:
    return [type(event) for event in one.events if isinstance(event, kinds)]


async def test_ticket_of_a_busy_device_set_is_measured_by_another(a_round: Make) -> None:
    agents = {"a": gains("0")}
    one = await a_round(plan("a", devices=("first", "second")), agents, factors=VALUES)
    busy(one.host, "first", 99)
    await one.whole()

    (back,) = one.all(TicketPutBack)
    assert (back.ticket, back.device, back.why) == (ticket("a", "0"), "first", "taken")
    assert one.only(TicketMeasured).measurement.device == "second"
    dropped = [request.attempt.binding for request in one.host.of("close_attempt")]
    assert next(event.measurement for event in one.all(TicketTaken)) in dropped
    assert not one.host.trials


async def test_last_ticket_of_a_device_set_that_was_busy_is_measured_once_it_is_free(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES)
    busy(one.host, "cpu", 3)
    await one.whole()

    assert len(one.all(TicketPutBack)) == 3
    assert sorted(event.ticket for event in one.all(TicketMeasured)) == sorted(ticket("a", n) for n in ("0", "1"))
    assert not one.host.trials


async def test_one_trial_is_built_while_another_is_measured_and_no_more(a_round: Make) -> None:
    one, free = await a_round(plan("a"), {"a": gains(*several(4))}, factors=VALUES), asyncio.Event()
    built = list[int]()

    async def hook(name: str, request: Any) -> None:
        if is_of_ticket(name, request) and not free.is_set():
            while not ended(one.host):
                await asyncio.sleep(0.05)
            built.append(len(one.host.of("build_trial")))
            free.set()

    one.host.hook = hook
    await one.whole()

    guard, measured, ahead = 1, 1, 1
    assert built == [guard + measured + ahead]
    assert len(one.all(TicketMeasured)) == 4


async def test_lane_is_told_that_a_ticket_waits_until_its_device_set_comes_to_it(a_round: Make) -> None:
    one, seen = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES), list[list[str]]()

    async def hook(name: str, request: Any) -> None:
        if is_of_ticket(name, request) and not seen:
            while not ended(one.host):
                await asyncio.sleep(0.05)
            seen.append([status.state.value for status in await LaneDesk("a", one.handle).tickets()])

    one.host.hook = hook
    await one.whole()

    first, second = ticket("a", "0"), ticket("a", "1")
    assert seen == [["measuring", "queued"]]
    assert [event.ticket for event in one.all(DeviceTurned)] == [first, None, second, None]
    assert [event.measurement > 0 for event in one.all(DeviceTurned)] == [True, False, True, False]


def ended(host: RoundHost) -> bool:
    """Whether the lane has ended: everything is handed over, and whatever is built ahead was begun."""
    return len(host.of("close_attempt")) > 0 and not host.running["build_trial"]


async def test_device_set_measures_the_next_ticket_while_the_last_one_is_validated(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES)
    together = asyncio.Event()

    async def hook(name: str, request: Any) -> None:
        if name == "validate_outputs" and request.candidate == sha("a 0"):
            await asyncio.wait_for(together.wait(), 20)
        if name == "measure_pairs" and request.candidate == sha("a 1"):
            together.set()

    one.host.hook = hook
    await one.whole()

    assert [event.ticket for event in one.all(TicketMeasured)] == [ticket("a", "0"), ticket("a", "1")]
    assert one.host.most["measure_pairs"] == 1


async def test_device_set_waits_for_a_validator_that_cannot_keep_up(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains(*several(5))}, factors=VALUES)
    measured = list[int]()

    def tickets() -> int:
        return sum(request.candidate != INCUMBENT for request in one.host.of("measure_pairs"))

    async def hook(name: str, request: Any) -> None:
        if name == "validate_outputs" and request.candidate == sha("a 0"):
            while len(one.host.of("build_trial")) < 1 + 4 or one.host.running["build_trial"]:
                await asyncio.sleep(0.05)
            while tickets() < 3:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            measured.append(tickets())

    one.host.hook = hook
    await one.whole()

    validated, waits, done = 1, 1, 1
    assert measured == [validated + waits + done]
    assert len(one.all(TicketMeasured)) == 5


async def test_ticket_whose_outputs_are_refused_once_the_device_is_free_is_no_gain(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES)

    async def hook(name: str, request: Any) -> Validated | None:
        if name != "validate_outputs" or request.candidate != sha("a 0"):
            return None
        return Validated(invalid=Exit(kind=ExitKind.FAILED, number=3), side="candidate", detail="pair 2: wrong")

    one.host.hook = hook
    await one.whole()

    wrong, right = one.all(TicketMeasured)
    assert (wrong.evaluation.verdict, wrong.measurement.detail) == (Judgement.INVALID, "pair 2: wrong")
    assert len(wrong.measurement.pairs) == len(right.measurement.pairs)
    assert [pick.ticket for pick in one.only(PicksMade).picks] == [ticket("a", "1")]


async def test_incumbent_is_measured_against_itself_after_every_k_tickets_of_a_device_set(a_round: Make) -> None:
    one = await a_round(plan("a", aa_every=2), {"a": gains(*several(5))}, factors=VALUES)
    await one.whole()

    guard, measured = GuardMeasured, TicketMeasured
    assert order(one, guard, measured) == [guard, measured, measured, guard, measured, measured, guard, measured]


async def test_device_set_that_drifts_measures_no_ticket_until_the_incumbent_is_itself_again(a_round: Make) -> None:
    one = await a_round(plan("a", aa_every=1), {"a": gains("0", "1")}, factors=VALUES)
    one.host.hook = _drifting(one.host, 2, 3)
    await one.whole()

    kinds = (GuardMeasured, TicketMeasured, QueuePaused, QueueResumed)
    guard, measured, paused, resumed = kinds
    assert order(one, *kinds) == [guard, measured, guard, paused, guard, guard, resumed, measured]
    assert [event.result.passed for event in one.all(GuardMeasured)] == [True, False, False, True]
    assert one.only(QueuePaused).device == "cpu"


def _drifting(host: RoundHost, *guards: int) -> Callable[[str, Any], Awaitable[Measurement | None]]:
    """The so-manyth measurements of the incumbent against itself show a difference."""
    count = 0

    async def hook(name: str, request: Any) -> Measurement | None:
        nonlocal count
        if name != "measure_pairs" or request.candidate != INCUMBENT:
            return None
        count += 1
        return host.measured(request.model_copy(update={"candidate": sha("a 0")})) if count in guards else None

    return hook


async def test_ticket_waits_for_no_device_set_that_is_paused(a_round: Make) -> None:
    agents = {"a": gains(*several(4))}
    one = await a_round(plan("a", devices=("first", "second"), aa_every=1, deadline_s=25.0), agents, factors=VALUES)
    begun = set[str]()

    async def hook(name: str, request: Any) -> Measurement | None:
        if name != "measure_pairs" or request.candidate != INCUMBENT:
            return None
        known = request.device in begun
        begun.add(request.device)
        drifts = known and request.device == "first"
        return one.host.measured(request.model_copy(update={"candidate": sha("a 0")})) if drifts else None

    one.host.hook = hook
    await one.whole()

    assert one.all(TicketRejected) == []
    assert len(one.all(TicketMeasured)) == 4


async def test_deadline_of_the_round_refuses_what_was_not_measured_by_then(a_round: Make) -> None:
    one = await a_round(plan("a", deadline_s=8.0), {"a": gains(*several(4))}, factors=VALUES)

    async def hook(name: str, request: Any) -> None:
        if is_of_ticket(name, request) and request.deadline is not None:
            while time.time() < request.deadline:
                await asyncio.sleep(0.05)

    one.host.hook = hook
    await one.whole()

    assert [event.ticket for event in one.all(TicketMeasured)] == [ticket("a", "0")]
    assert {event.ticket: event.cause for event in one.all(TicketRejected)} == dict.fromkeys(
        (ticket("a", number) for number in ("1", "2", "3")), Cause.ROUND_OVER
    )
    assert not one.host.trials


async def test_ticket_that_the_deadline_cut_short_speaks_neither_for_its_entry_nor_against_it(a_round: Make) -> None:
    one = await a_round(plan("a", deadline_s=60.0), {"a": gains("0")}, factors=VALUES)

    async def hook(name: str, request: Any) -> Measurement | None:
        if not is_of_ticket(name, request):
            return None
        found = one.host.measured(request)
        return found.model_copy(update={"pairs": found.pairs[:1], "detail": "its deadline passed"})

    one.host.hook = hook
    await one.whole()

    assert one.only(TicketMeasured).evaluation.verdict is Judgement.UNEVALUABLE
    (record,) = one.host.of("record_round")
    assert [row.status for row in record.revisions] == [EntryStatus.PLANNED]


async def test_no_ticket_is_on_two_device_sets_and_no_device_set_has_two(a_round: Make) -> None:
    agents = {"a": gains(*several(6)), "b": gains(*several(6))}
    one = await a_round(plan("a", "b", devices=("first", "second")), agents, factors=VALUES)
    at_work, both = list[str](), asyncio.Event()

    async def hook(name: str, request: Any) -> None:
        if is_of_ticket(name, request):
            assert request.candidate not in at_work
            at_work.append(request.candidate)
            if len(at_work) == 2:
                both.set()
            await both.wait()
            await asyncio.sleep(0.1 if request.device == "first" else 0.07)
            at_work.remove(request.candidate)

    one.host.hook = hook
    await one.whole()

    tickets = {event.submission.ticket for event in one.all(TicketQueued)}
    assert sorted(event.ticket for event in one.all(TicketMeasured)) == sorted(tickets)
    assert sorted(event.ticket for event in one.all(TicketTaken)) == sorted(tickets)
    assert (one.host.most["first"], one.host.most["second"], one.host.most["measure_pairs"]) == (1, 1, 2)


async def test_lane_that_submits_much_does_not_starve_the_others(a_round: Make) -> None:
    handed_over = asyncio.Event()

    async def one_after_many(desk: LaneDesk) -> None:
        await handed_over.wait()
        await desk.submit("0")

    async def many(desk: LaneDesk) -> None:
        await gains(*several(5))(desk)
        handed_over.set()

    one = await a_round(plan("a", "b"), {"a": many, "b": one_after_many}, factors=VALUES)
    gate = asyncio.Event()

    async def hook(name: str, request: Any) -> None:
        if is_of_ticket(name, request) and not gate.is_set():
            while len(one.host.of("close_attempt")) < 2:
                await asyncio.sleep(0.05)
            gate.set()

    one.host.hook = hook
    await one.whole()

    assert [event.lane for event in one.all(TicketMeasured)] == ["a", "a", "b", "a", "a", "a"]


async def test_candidate_that_does_not_build_is_rejected_and_takes_no_device(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES)
    _fails_to_build(one.host, "candidate")
    await one.whole()

    rejected = one.only(TicketRejected)
    assert (rejected.ticket, rejected.cause, rejected.detail) == (ticket("a", "0"), Cause.BUILD_FAILED, "broken")
    assert [event.ticket for event in one.all(TicketMeasured)] == [ticket("a", "1")]
    assert sha("a 0") not in [request.candidate for request in one.host.of("measure_pairs")]


@pytest.mark.parametrize("step", ["build_trial", "measure_pairs", "validate_outputs"])
async def test_step_of_a_ticket_that_the_host_cannot_do_costs_that_ticket_alone(a_round: Make, step: str) -> None:
    one = await a_round(plan("a"), {"a": gains("0", "1")}, factors=VALUES)

    async def hook(name: str, request: Any) -> None:
        if name == step and request.candidate == sha("a 0"):
            raise ValueError("broken")

    one.host.hook = hook
    await one.whole()

    rejected = one.only(TicketRejected)
    assert (rejected.ticket, rejected.cause, rejected.detail) == (
        ticket("a", "0"), Cause.HOST_FAULT, "ValueError: broken"
    )  # fmt: skip
    assert one.only(TicketMeasured).ticket == ticket("a", "1")
    assert one.only(RunEnded).status == "succeeded"


async def test_base_that_does_not_build_beside_it_is_no_fault_of_the_ticket(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("0")}, factors=VALUES)
    _fails_to_build(one.host, "base")
    await one.whole()

    measured = one.only(TicketMeasured)
    assert measured.evaluation.verdict is Judgement.UNEVALUABLE
    assert (measured.measurement.failed, measured.measurement.side) == (Cause.BUILD_FAILED, "base")
    assert one.all(TicketRejected) == []


def _fails_to_build(host: RoundHost, side: str) -> None:
    async def hook(name: str, request: Any) -> Built | None:
        if name == "build_trial" and request.candidate == sha("a 0"):
            return Built(failed=Cause.BUILD_FAILED, side=side, detail="broken")
        return None

    host.hook = hook


@pytest.mark.parametrize(("noisy", "end"), [(True, RunReason.TOO_NOISY), (False, RunReason.INCUMBENT_FAILS)])
async def test_host_that_cannot_measure_the_incumbent_begins_no_lane(
    a_round: Make, noisy: bool, end: RunReason
) -> None:
    one = await a_round(plan("a"), {"a": gains("0")}, factors=VALUES)

    async def hook(name: str, request: Any) -> Measurement | None:
        if name != "measure_pairs":
            return None
        facts = {} if noisy else {"pairs": (), "failed": Cause.BUILD_FAILED}
        return one.host.measured(request.model_copy(update={"candidate": sha("a 0")}), **facts)

    one.host.hook = hook
    await one.whole()

    reason = one.only(RunEnded).reason
    assert reason is not None
    assert (reason.code, reason.data["device"]) == (end, "cpu")
    assert len(one.all(GuardMeasured)) == (3 if noisy else 1)
    assert one.host.of("open_lane") == []
    assert order(one, LaneEnded, PicksMade) == []


async def test_device_set_that_is_busy_until_the_deadline_begins_no_lane(a_round: Make) -> None:
    one = await a_round(plan("a", deadline_s=2.0), {"a": gains("0")}, factors=VALUES)

    async def hook(name: str, request: Any) -> Measurement | None:
        return one.host.measured(request, pairs=(), busy="taken") if name == "measure_pairs" else None

    one.host.hook = hook
    await one.whole()

    reason = one.only(RunEnded).reason
    assert reason is not None
    assert reason.code is RunReason.DEADLINE
    assert "taken" in str(reason.data["why"])
    assert one.host.of("open_lane") == []
