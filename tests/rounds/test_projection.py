"""What people see of a round: a whole one by example, live ones by their prefixes."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from orch.cli.round_words import lane_words
from orch.workflows.model.event import EVENT, Event
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round import event as ev
from orch.workflows.model.round.composition import StepResult
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.lane_view import LaneState
from orch.workflows.model.round.plan import LaneBudget
from orch.workflows.model.round.ticket import TicketState
from orch.workflows.model.round.view import DeviceState, RoundPhase, RoundView
from orch.workflows.model.view import RunStatus
from orch.workflows.rules.round_projection import project_round

from .events import PLAN, Story, lane
from .stories import ROUND, STORIES, composed, fallen_back, fruitless, unmeasurable


def after(kind: type[Any], count: int = 1) -> RoundView:
    """The view of the composed round when the `count`-th event of a kind has just been recorded."""
    events = composed()
    places = [n for n, event in enumerate(events, 1) if isinstance(event, kind)]
    return project_round(events[: places[count - 1]])


def test_a_finished_round_tells_what_was_composed_and_what_it_is_worth() -> None:
    view = project_round(composed())

    assert (view.id, view.status, view.phase) == (ROUND, RunStatus.SUCCEEDED, RoundPhase.ENDED)
    assert [(step.lane, step.result) for step in view.steps] == [
        ("tokens", StepResult.FIRST),
        ("cache", StepResult.SKIPPED),
        ("output", StepResult.ADDED),
    ]
    assert {lane.id: (lane.result, lane.kept) for lane in view.lanes} == {
        "tokens": (StepResult.FIRST, True),
        "cache": (StepResult.SKIPPED, False),
        "output": (StepResult.ADDED, True),
    }
    assert (view.new_incumbent, view.decided, len(view.chain)) == (view.chain[-1], True, 2)
    assert view.confirmed == view.reruns[-1].evaluation
    assert view.promoted is not None
    assert (view.promoted.branch, view.promoted.paths) == ("faster", 3)
    assert view.rejects == {"build_failed": 1, "link_escapes": 1, "protected_path": 1}
    assert view.warnings == ("lanes tokens and cache attack the same stage, lexing",)


def test_the_lanes_of_a_new_incumbent_stand_in_the_order_of_composition() -> None:
    view = project_round(composed())

    assert view.model_copy(update={"lanes": view.lanes[::-1]}).composed == ("tokens", "output")
    assert project_round(fallen_back()).composed == ("tokens",)


def test_a_step_stands_beside_the_gain_of_its_lane_alone() -> None:
    view = project_round(composed())
    picked = {ticket.ticket: ticket for ticket in view.tickets if ticket.picked}

    for step in view.steps:
        evaluation = picked[step.ticket].evaluation
        assert evaluation is not None
        assert step.alone == evaluation.gain
    first, skipped, added = view.steps
    assert (first.interaction, first.interaction_log) == (None, None)
    assert skipped.interaction is not None
    assert added.interaction is not None
    assert skipped.interaction < 0.2
    assert added.interaction > 0.6


def test_a_rerun_stands_beside_what_was_promised_for_it() -> None:
    (rerun,) = project_round(composed()).reruns
    view = project_round(composed())

    gains = {step.lane: step.evaluation.gain or 0 for step in view.steps}
    alone = {step.lane: step.alone or 0 for step in view.steps}
    assert rerun.steps == gains["tokens"] + gains["output"]
    assert rerun.tickets == alone["tokens"] + alone["output"]
    assert (rerun.evaluation.gain or 9.0) < (rerun.steps or 0.0)
    assert (rerun.steps or 9.0) < (rerun.tickets or 0.0)


def test_the_step_of_a_single_lane_that_is_measured_anew_is_its_ticket() -> None:
    head, single = project_round(fallen_back()).reruns

    assert (head.fallback, head.evaluation.passed, single.fallback, single.evaluation.passed) == (
        False,
        False,
        True,
        True,
    )
    assert single.steps == single.tickets == project_round(fallen_back()).steps[0].alone
    assert [lane.id for lane in project_round(fallen_back()).lanes if lane.kept] == ["tokens"]


def test_a_round_without_a_gain_keeps_its_incumbent_and_all_negatives() -> None:
    view = project_round(fruitless())

    assert view.reason is not None
    assert (view.status, view.reason.code) == (RunStatus.FAILED, RunReason.NO_GAIN)
    assert (view.decided, view.new_incumbent, view.confirmed, view.chain) == (True, None, None, ())
    assert {lane.id: lane.end for lane in view.lanes} == {
        "tokens": LaneEnd.DONE,
        "cache": LaneEnd.NOT_OPENED,
        "output": LaneEnd.DEADLINE,
    }
    assert [ticket.state for ticket in view.tickets] == [TicketState.MEASURED]


def test_a_round_that_never_began_has_lanes_without_anything() -> None:
    view = project_round(unmeasurable())

    assert [(lane.state, lane.attempts, lane.tickets, lane.deadline) for lane in view.lanes] == [
        (LaneState.ENDED, (), (), None)
    ] * 3
    assert (view.guards.measured, view.noise, view.device_hours) == (0, None, 0)
    assert all(device.busy is None for device in view.devices)


def test_a_ledger_without_events_is_a_nameless_running_round() -> None:
    assert project_round([]) == RoundView(id="", status=RunStatus.RUNNING)


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        (ev.RoundStarted, RoundPhase.PREPARING),
        (ev.RoundReady, RoundPhase.CALIBRATING),
        (ev.LaneStarted, RoundPhase.SEARCHING),
        (ev.PicksMade, RoundPhase.COMPOSING),
        (ev.RoundDecided, RoundPhase.RECORDING),
    ],
)
def test_phase_is_the_furthest_point_reached(kind: type[Event], phase: RoundPhase) -> None:
    assert after(kind).phase is phase


def test_a_lane_is_where_its_last_event_left_it() -> None:
    states = [
        after(kind, count).lanes[1].state
        for kind, count in [
            (ev.RoundReady, 1),
            (ev.LaneStarted, 2),
            (ev.LaneReady, 2),
            (ev.BindingClaimed, 2),
            (ev.BindingSettled, 1),
            (ev.BindingClaimed, 4),
            (ev.LaneEnded, 2),
        ]
    ]

    assert states == [
        LaneState.WAITING,
        LaneState.OPENING,
        LaneState.OPEN,
        LaneState.WORKING,
        LaneState.OPEN,
        LaneState.WORKING,
        LaneState.ENDED,
    ]


def test_a_lane_that_rests_tells_until_when_and_why() -> None:
    it = Story()
    it.ready()
    it.open("tokens")
    it.settle("tokens", 1, OutcomeKind.RATE_LIMITED)
    it.rest("tokens", 900)
    resting = project_round(it.events).lanes[0]
    it.go_on("tokens", 900)
    gone_on = project_round(it.events).lanes[0]

    assert (resting.state, resting.detail) == (LaneState.RESTING, "rate limited: 429")
    assert resting.resting_until is not None
    assert resting.resting_until == it.now - 1
    assert (gone_on.state, gone_on.resting_until, gone_on.detail) == (LaneState.OPEN, None, "")
    shown = "goes on at " + datetime.fromtimestamp(resting.resting_until, UTC).astimezone().strftime("%H:%M:%S")
    assert lane_words(resting) == f"waits for its provider, {shown}: rate limited: 429"


def test_attempts_tell_how_they_ended_and_what_they_used() -> None:
    first, second = project_round(composed()).lanes[1].attempts

    assert (first.state, first.outcome, first.exit, first.usage.usd) == ("settled", "crashed", "exit 3", 0.05)
    assert (second.outcome, second.usage.wall_s) == ("done", 410.0)
    assert after(ev.BindingClaimed).lanes[0].attempts[0].state == "claimed"


def test_a_device_set_tells_what_it_measures_waits_for_and_why_it_is_paused() -> None:
    taken, back, paused = after(ev.DeviceTurned, 4), after(ev.TicketPutBack), after(ev.QueuePaused)

    device = taken.devices[0]
    assert (device.state, device.ticket) == (DeviceState.MEASURING, taken.lanes[1].tickets[1].ticket)
    assert (back.devices[0].state, back.devices[0].why) == (DeviceState.WAITING, "another process uses processor 0")
    assert back.lanes[1].tickets[1].put_back == 1
    assert (paused.devices[0].state, paused.devices[1].state) == (DeviceState.PAUSED, DeviceState.IDLE)
    assert not paused.queue.paused, "the other device set still measures"


def test_what_is_built_ahead_waits_behind_what_is_measured() -> None:
    it = Story()
    it.ready()
    it.open()
    first, second = it.submit("tokens", "a"), it.submit("output", "b")
    it.take(first)
    it.take(second, ahead=True)

    device = project_round(it.events).devices[0]

    assert (device.ticket, device.ahead, device.ordinal) == (first, second, 1)


def test_a_device_set_measures_nothing_while_its_next_ticket_is_built_or_the_last_one_is_validated() -> None:
    it = Story()
    it.ready()
    it.open()
    first, second = it.submit("tokens", "a"), it.submit("output", "b")
    it.take(first, ahead=True)
    built = project_round(it.events)
    it.turn(first)
    it.take(second, ahead=True)
    it.free()
    validated = project_round(it.events)
    it.turn(second)
    it.measured(first, "tokens", 0.9)
    later = project_round(it.events)

    assert [(seen.devices[0].state, seen.devices[0].ticket, seen.devices[0].ahead) for seen in (built, validated)] == [
        (DeviceState.IDLE, "", first),
        (DeviceState.IDLE, "", second),
    ]
    assert [ticket.state for ticket in built.tickets] == [TicketState.QUEUED, TicketState.QUEUED]
    assert [ticket.state for ticket in validated.tickets] == [TicketState.MEASURING, TicketState.QUEUED]
    assert (later.devices[0].state, later.devices[0].ticket) == (DeviceState.MEASURING, second)


def test_a_device_set_is_at_no_ticket_while_the_incumbent_is_measured_against_itself() -> None:
    it = Story()
    it.ready()
    it.open()
    ticket = it.submit("tokens", "a")
    it.turn(None)
    it.take(ticket, ahead=True)
    during = project_round(it.events).devices[0]
    it.guard()
    after_it = project_round(it.events).devices[0]

    assert (during.state, during.ticket, during.ahead) == (DeviceState.MEASURING, "", ticket)
    assert (after_it.state, after_it.ahead) == (DeviceState.IDLE, ticket)


def test_a_ticket_that_was_put_back_is_no_longer_at_the_device_set_that_was_busy() -> None:
    it = Story()
    it.ready()
    it.open()
    first, second = it.submit("tokens", "a"), it.submit("output", "b")
    it.take(first)
    it.put_back(first, "taken")
    resting = project_round(it.events).devices[0]
    it.take(first, "cpu-b")
    free = project_round(it.events).devices[0]
    it.take(second)
    busy, other = project_round(it.events).devices

    assert (resting.state, resting.ticket, resting.why) == (DeviceState.WAITING, first, "taken")
    assert (free.state, free.ticket) == (DeviceState.IDLE, "")
    assert (busy.state, busy.ticket, busy.ahead) == (DeviceState.MEASURING, second, "")
    assert (other.state, other.ticket) == (DeviceState.MEASURING, first)


def test_the_queue_is_paused_when_every_device_set_is() -> None:
    it = Story()
    it.ready()
    it.open()
    it.submit("tokens", "a")
    it.pause("drift", "cpu-a")
    it.pause("drift", "cpu-b")

    queue = project_round(it.events).queue

    assert (queue.paused, queue.why, queue.length) == (True, "drift", 1)


def test_a_ticket_waits_from_its_submission_until_its_device_set_is_held() -> None:
    events = composed()
    queued = next(event for event in events if isinstance(event, ev.TicketQueued))
    done = next(event for event in events if isinstance(event, ev.TicketMeasured))

    ticket = project_round(events).lanes[0].tickets[0]

    assert ticket.wait_s == pytest.approx(done.time - done.measurement.held_s - queued.time, abs=0.001)
    assert ticket.held_s == done.measurement.held_s


def test_no_device_is_held_while_what_it_left_is_validated() -> None:
    events = list(composed())
    number = next(n for n, event in enumerate(events) if isinstance(event, ev.TicketMeasured))
    done = events[number]
    assert isinstance(done, ev.TicketMeasured)
    free_at = done.time - 3.0
    events[number] = done.model_copy(update={"measurement": done.measurement.model_copy(update={"free_at": free_at})})
    queued = next(event for event in events if isinstance(event, ev.TicketQueued))

    ticket = project_round(events).lanes[0].tickets[0]

    assert ticket.wait_s == pytest.approx(free_at - done.measurement.held_s - queued.time, abs=0.001)


def test_busy_is_the_share_of_the_time_between_the_first_ticket_and_the_decision() -> None:
    it = Story()
    it.ready()
    it.guard()
    it.open()
    ticket = it.submit("tokens", "a")
    first = it.now
    it.take(ticket)
    it.measured(ticket, "tokens", 0.9)
    it.record(ev.PicksMade, 100.0, picks=())
    view = project_round(it.events)

    held = view.tickets[0].held_s or 0
    assert view.devices[0].busy == pytest.approx(held / (it.now - first), abs=1e-4)
    assert (view.devices[1].busy, view.devices[0].measurements) == (0.0, 2)


def test_device_hours_count_every_measurement() -> None:
    events = composed()
    found = [getattr(event, "measurement", None) for event in events]
    held = sum(one.held_s for one in found if one is not None and not isinstance(one, int))

    assert project_round(events).device_hours == pytest.approx(held / 3600)


def test_a_budget_in_a_unit_that_an_agent_does_not_report_is_warned_of() -> None:
    capped = lane("output", "io", "writing", budget=LaneBudget(tokens=1000, usd=1.0))
    it = Story(PLAN.model_copy(update={"lanes": (capped,)}))
    it.ready()
    it.open()
    it.settle("output", 1, tokens_in=None, tokens_out=None)

    assert project_round(it.events).warnings == (
        "the agent of lane output reports no tokens: the lane's budget in tokens cannot hold",
    )


def test_foreign_texts_are_cut_to_what_a_query_may_hold() -> None:
    it = Story()
    it.ready()
    it.open("tokens")
    it.end("tokens", LaneEnd.BROKEN, "x" * 9000)

    assert len(project_round(it.events).lanes[0].detail) == 200


@pytest.mark.parametrize("name", STORIES)
def test_a_ledger_read_back_from_disk_gives_the_same_view(name: str) -> None:
    events = STORIES[name]()
    again = [EVENT.validate_json(EVENT.dump_json(event)) for event in events]

    view = project_round(events)

    assert project_round(again) == view
    assert RoundView.model_validate_json(view.model_dump_json()) == view


@pytest.mark.parametrize("name", STORIES)
def test_every_prefix_is_a_live_round_and_nothing_that_was_counted_is_lost(name: str) -> None:
    events = STORIES[name]()
    views = [project_round(events[:n]) for n in range(len(events) + 1)]

    for before, now in pairwise(views):
        assert (before.usage.tokens or 0) <= (now.usage.tokens or 0)
        assert before.device_hours <= now.device_hours
        assert {ticket.ticket for ticket in before.tickets} <= {ticket.ticket for ticket in now.tickets}
        assert len(before.steps) <= len(now.steps)
    assert all(view.ended_at is None for view in views[:-1])
