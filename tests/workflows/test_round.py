"""A round as a workflow: what a submission is answered, and that however it ends nothing of it is left at work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from orch.workflows import ledger
from orch.workflows.errors import RefusedError
from orch.workflows.model.event import LedgerPage, RunEnded, RunPromoted
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.event import (
    LaneEnded,
    LaneStarted,
    RoundDecided,
    RoundRecorded,
    TicketQueued,
    TicketRejected,
)
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.plan import EntryStatus
from orch.workflows.model.round.ticket import Cause, TicketState, TicketStatus

from .one_round import OneRound
from .round_host import LaneDesk, endless, gains, idle
from .round_plans import plan, submission, ticket

pytestmark = [pytest.mark.engine]

Make = Callable[..., Awaitable[OneRound]]

STEPS = ("open_lane", "run_agent", "take_in", "build_trial", "measure_pairs", "compose_step", "record_round", "promote")
STEPS_OF_LANES = STEPS[:5]
BRANCH = PromoteTarget.parse("branch:faster")


def ended(one: OneRound) -> tuple[str, RunReason]:
    """The status and reason of a round, whose end is the last that is in its ledger."""
    last = one.events[-1]
    assert isinstance(last, RunEnded)
    assert last.reason is not None
    return last.status, last.reason.code


async def refused(desk: LaneDesk, name: str, **facts: Any) -> str:
    """The type of the error that a submission is answered with."""
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await desk.submit(name, **facts)
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause.type or ""


async def test_same_files_again_are_told_what_became_of_them(a_round: Make) -> None:
    answers: list[TicketStatus] = []

    async def twice(desk: LaneDesk) -> None:
        for update in ("one", "two", "three"):
            found = submission("a", "x")
            answers.append(await desk.handle.execute_update("submit", found, id=update, result_type=TicketStatus))

    one = await a_round(plan("a"), {"a": twice}, factors={"a x": 0.9})
    await one.whole()

    assert [answer.duplicate for answer in answers] == [False, True, True]
    assert answers[0].state is TicketState.QUEUED
    assert len(one.all(TicketQueued)) == 1


async def test_lane_past_its_cap_is_told_so_and_its_other_tickets_stay(a_round: Make) -> None:
    answers: list[TicketStatus] = []

    async def many(desk: LaneDesk) -> None:
        answers.extend([await desk.submit(name) for name in ("x", "y", "z", "x")])

    one = await a_round(plan("a", more={"submissions": 2}), {"a": many}, factors={"a x": 0.9, "a y": 0.8})
    await one.whole()

    assert [answer.cause for answer in answers] == [None, None, Cause.CAP, None]
    assert answers[-1] == answers[0]
    assert [event.ticket for event in one.all(TicketRejected)] == [ticket("a", "z")]


async def test_what_intake_refused_is_in_the_ledger_and_counts(a_round: Make) -> None:
    async def careless(desk: LaneDesk) -> None:
        await desk.submit("x", commit=None, tree=None, refused=Cause.PROTECTED, detail="bench/run.py")
        await desk.submit("y")

    one = await a_round(plan("a", more={"submissions": 1}), {"a": careless})
    await one.whole()

    assert [(event.cause, event.detail) for event in one.all(TicketRejected)] == [
        (Cause.PROTECTED, "bench/run.py"),
        (Cause.CAP, "the lane may submit 1"),
    ]
    assert ended(one) == ("failed", RunReason.NO_GAIN)


async def test_submission_after_the_lanes_deadline_is_refused(a_round: Make) -> None:
    async def late(desk: LaneDesk) -> None:
        (opened,) = one.host.of("open_lane")
        while time.time() < opened.deadline:
            await asyncio.sleep(0.05)
        assert (await desk.submit("x")).cause is Cause.LANE_DEADLINE

    one = await a_round(plan("a", more={"deadline_s": 1.0}), {"a": late})
    await one.whole()

    assert one.only(TicketRejected).cause is Cause.LANE_DEADLINE
    assert one.only(LaneEnded).end is LaneEnd.DONE


async def test_submission_while_the_round_composes_is_refused(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9})

    async def hook(name: str, request: Any) -> None:
        if name == "compose_step":
            assert (await LaneDesk("a", one.handle).submit("y")).cause is Cause.ROUND_OVER

    one.host.hook = hook
    await one.whole()

    assert one.only(TicketRejected).ticket == ticket("a", "y")
    assert ended(one) == ("succeeded", RunReason.DONE)


async def test_submission_after_the_end_of_the_round_is_refused_and_the_end_stays_its_last_word(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9})
    answers: list[TicketStatus] = []

    async def hook(name: str, request: Any) -> None:
        if name == "close_run":
            answers.append(await LaneDesk("a", one.handle).submit("y"))

    one.host.hook = hook
    await one.start()
    async with one.worker():
        await one.handle.result()
        pages = [page async for page in _pages(one)]

    assert [(answer.ticket, answer.cause) for answer in answers] == [(ticket("a", "y"), Cause.ROUND_OVER)]
    assert isinstance(pages[-1].events[-1], RunEnded)


async def test_lane_that_the_plan_does_not_know_is_turned_away(a_round: Make) -> None:
    async def stranger(desk: LaneDesk) -> None:
        assert await refused(LaneDesk("z", desk.handle), "x") == "UnknownLane"

    one = await a_round(plan("a"), {"a": stranger})
    await one.whole()

    assert one.all(TicketRejected) == []
    assert one.only(LaneEnded).end is LaneEnd.DONE


async def test_ticket_that_stands_for_other_files_is_turned_away(a_round: Make) -> None:
    async def forger(desk: LaneDesk) -> None:
        await desk.submit("x")
        other = submission("a", "x", digest="f" * 64)
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await desk.handle.execute_update("submit", other, id="another")
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == "TicketTaken"

    one = await a_round(plan("a"), {"a": forger}, factors={"a x": 0.9})
    await one.whole()

    assert one.only(TicketQueued).submission == submission("a", "x")
    assert one.only(LaneEnded).end is LaneEnd.DONE


async def test_lane_that_breaks_leaves_the_others_at_work(a_round: Make) -> None:
    one = await a_round(plan("a", "b"), {"a": gains("x"), "b": gains("x")}, factors={"b x": 0.9})

    async def hook(name: str, request: Any) -> None:
        if name == "open_lane" and request.lane.id == "a":
            raise ValueError("broken")

    one.host.hook = hook
    await one.whole()

    assert {event.lane: event.end for event in one.all(LaneEnded)} == {"a": LaneEnd.BROKEN, "b": LaneEnd.DONE}
    assert one.only(RoundDecided).lanes == ("b",)


@pytest.mark.parametrize("step", ["prepare_round", *STEPS])
async def test_round_that_is_cancelled_at_any_step_clears_away_and_ends_as_cancelled(a_round: Make, step: str) -> None:
    agents = {"a": gains("x"), "b": endless if step in STEPS_OF_LANES else idle}
    one = await a_round(plan(*agents, devices=("one", "two")), agents, factors={"a x": 0.9}, promote=BRANCH)
    one.host.hook = _held_at(step)

    await one.start()
    async with one.worker():
        await one.until(step)
        await one.handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await one.handle.result()

    assert isinstance(failed.value.cause, CancelledError)
    assert ended(one) == ("cancelled", RunReason.CANCELLED)
    _closed(one)


@pytest.mark.parametrize("step", ["prepare_round", "build_trial", "measure_pairs", "compose_step", "promote"])
async def test_round_that_is_cancelled_ends_as_cancelled_even_if_its_step_fails_over_it(
    a_round: Make, step: str
) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9}, promote=BRANCH)
    held = _held_at(step)

    async def hook(name: str, request: Any) -> None:
        try:
            await held(name, request)
        except asyncio.CancelledError as error:
            raise LookupError("in the middle of a call") from error

    one.host.hook = hook
    await one.start()
    async with one.worker():
        await one.until(step, 2 if step == "measure_pairs" else 1)  # the incumbent is measured before any ticket
        await one.handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await one.handle.result()

    assert isinstance(failed.value.cause, CancelledError)
    assert ended(one) == ("cancelled", RunReason.CANCELLED)
    assert one.all(TicketRejected) == []
    _closed(one)


def _held_at(step: str) -> Callable[[str, Any], Awaitable[None]]:
    """The step does not end by itself; of measurements those of tickets."""

    async def hook(name: str, request: Any) -> None:
        own = name != "measure_pairs" or request.candidate != request.base
        if name == step and own:
            await asyncio.Event().wait()

    return hook


def _closed(one: OneRound) -> None:
    """Every lane that began has ended, and nothing was at work when the run was closed, nor was begun after that."""
    assert {event.lane for event in one.all(LaneStarted)} == {event.lane for event in one.all(LaneEnded)}
    assert not one.host.left_at_work
    assert one.host.did[-1][0] == "close_run"


async def test_round_that_is_cancelled_records_what_its_measurements_showed(a_round: Make) -> None:
    async def cancelling(desk: LaneDesk) -> None:
        told: tuple[TicketStatus, ...] = ()
        while all(ticket.state is not TicketState.MEASURED for ticket in told):
            told = await one.handle.query("tickets", "a", result_type=tuple[TicketStatus, ...])
            await asyncio.sleep(0.05)
        await one.handle.cancel()
        await endless(desk)

    one = await a_round(plan("a", "b"), {"a": gains("x"), "b": cancelling}, factors={"a x": 1.1})
    with pytest.raises(WorkflowFailureError):
        await one.whole()

    (record,) = one.host.of("record_round")
    assert (record.incumbent, [row.status for row in record.revisions]) == (
        None, [EntryStatus.REJECTED, EntryStatus.PLANNED]
    )  # fmt: skip
    assert [type(event) for event in one.events[-2:]] == [RoundRecorded, RunEnded]
    _closed(one)


async def test_cancellation_that_comes_when_the_round_has_ended_changes_nothing(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9})

    async def hook(name: str, request: Any) -> None:
        if name == "close_run":
            await one.handle.cancel()

    one.host.hook = hook
    await one.whole()

    assert ended(one) == ("succeeded", RunReason.DONE)
    assert len(one.host.of("close_run")) == 1


@pytest.mark.parametrize("step", ["compose_step", "record_round", "promote"])
async def test_step_that_fails_ends_the_round_with_its_reason_and_everything_closed(a_round: Make, step: str) -> None:
    agents = {"a": gains("x"), "b": idle}
    one = await a_round(plan(*agents, devices=("one", "two")), agents, factors={"a x": 0.9}, promote=BRANCH)

    async def hook(name: str, request: Any) -> None:
        if name == step:
            raise ValueError("broken")

    one.host.hook = hook
    await one.whole()

    reason = one.only(RunEnded).reason
    assert reason is not None
    assert (reason.code, reason.data) == (RunReason.INTERNAL, {"step": step, "detail": "ValueError: broken"})
    _closed(one)


@pytest.mark.parametrize("step", ["prepare_round", "build_trial"])
async def test_host_that_is_in_the_way_before_any_lane_began_refuses_the_round(a_round: Make, step: str) -> None:
    one = await a_round(plan("a"), {"a": gains("x")})

    async def hook(name: str, request: Any) -> None:
        if name == step:
            raise RefusedError("the disk is full", hint="make room")

    one.host.hook = hook
    await one.whole()

    assert ended(one) == ("failed", RunReason.PREFLIGHT_FAILED)
    assert one.all(LaneStarted) == []


async def test_what_the_round_found_is_promoted_where_it_was_asked_to(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9}, promote=BRANCH)
    await one.whole()

    (asked,) = one.host.of("promote")
    assert (asked.new, asked.target, asked.chain) == (one.only(RoundDecided).incumbent, BRANCH, True)
    assert one.only(RunPromoted).promotion.target == BRANCH


async def test_ledger_is_kept_and_read_in_parts_that_fit_through_the_engine(
    a_round: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "PAGE_BYTES", 4000)
    one = await a_round(plan("a"), {"a": gains(*"uvwxyz")}, factors={f"a {name}": 0.9 for name in "uvwxyz"})
    await one.start()
    async with one.worker():
        await one.handle.result()
        pages = [page async for page in _pages(one)]

    numbers = list(range(1, len(one.events) + 1))
    assert [event.seq for event in one.events] == numbers
    assert [event.seq for page in pages for event in page.events] == numbers
    assert [page.ended for page in pages] == [*(False for _ in pages[1:]), True]
    parts = [request.events for request in one.host.of("keep_events")]
    for part in (*parts, *(page.events for page in pages)):
        assert len(part) == 1 or sum(len(event.model_dump_json()) for event in part) <= 4000
    assert len(parts) > 3
    assert len(pages) > 3


async def _pages(one: OneRound) -> AsyncIterator[LedgerPage]:
    since = 0
    while True:
        page: LedgerPage = await one.handle.query("ledger", since, result_type=LedgerPage)
        yield page
        if page.ended:
            return
        since = page.events[-1].seq


async def test_web_page_of_a_round_that_was_replayed_shows_its_end(a_round: Make) -> None:
    one = await a_round(plan("a"), {"a": gains("x")}, factors={"a x": 0.9})
    await one.whole()
    async with one.worker():
        shown = await one.handle.query("__temporal_workflow_metadata")

    assert str(shown.current_details).startswith("**succeeded**: done")
