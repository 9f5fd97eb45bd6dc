"""A pilot: its rounds as plans, its runs from their ledgers, its record on disk, its report, and a replay."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from orch.cli.pilot_facts import facts
from orch.cli.pilot_file import MAX_NAME
from orch.cli.pilot_plans import copy_of, round_of, steps
from orch.cli.pilot_report import report, report_lines
from orch.cli.piloting import run_pilot
from orch.cli.replaying import queue_of, replay_of
from orch.workflows.errors import RefusedError
from orch.workflows.model.event import Event
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.composition import StepResult
from orch.workflows.model.round.event import HeadRerun, RoundDecided, TicketMeasured
from orch.workflows.model.round.pilot import Arm, PilotPlan, PilotRule, PilotRun, Verdict
from orch.workflows.model.round.plan import Direction, RoundPlan
from orch.workflows.model.round.trial import Scale

from . import stories
from .events import PLAN, Story

FACTORS = {"tokens": 0.8, "cache": 0.78, "output": 0.9}
"""What each lane makes of the metric."""

RULE = PilotRule(target=0.3, fraction=0.8, threshold=0.9, sigmas=6)
PILOT = PilotPlan(id="speed", round=PLAN, repetitions=3, rule=RULE)
THINK_S, DEVICE = 100.0, "cpu-a"
VALIDATOR_S = 3.0


def run_of(plan: RoundPlan) -> str:
    return f"round-{plan.campaign}-{plan.id}"


def story(plan: RoundPlan, after: float = 0.0) -> list[Event]:
    """A round of that plan: every lane thinks so long, submits one ticket and waits for it; all are composed.

    It begins so many seconds later than stories do.
    """
    it = Story(plan, run=run_of(plan))
    it.ready()
    it.guard()
    it.open(*(lane.id for lane in plan.lanes))
    begun, tickets = it.now, {}
    for lane in plan.lanes:
        it.now = begun
        tickets[lane.id] = it.submit(lane.id, "faster", after=THINK_S)
    for lane in plan.lanes:
        it.take(tickets[lane.id])
        it.measured(tickets[lane.id], lane.id, FACTORS[lane.id])
        it.settle(lane.id, 1)
        it.end(lane.id)
    _compose(it, tickets)
    it.finish()
    return [event.model_copy(update={"at": _at(event.time + after)}) for event in it.events]


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _compose(it: Story, tickets: dict[str, str]) -> None:
    it.pick(*tickets.items())
    value = 1.0
    for number, (lane, ticket) in enumerate(tickets.items()):
        it.step(lane, ticket, StepResult.ADDED if number else StepResult.FIRST, (value, value * FACTORS[lane]))
        value *= FACTORS[lane]
    it.rerun(value)


Play = Callable[[RoundPlan], Awaitable[list[Event]]]


def player(played: list[str], stop_at: str = "") -> Play:
    clock = 0.0

    async def play(plan: RoundPlan) -> list[Event]:
        nonlocal clock
        if run_of(plan) == stop_at:
            raise KeyboardInterrupt
        played.append(run_of(plan))
        events = story(plan, clock)
        clock += events[-1].time - events[0].time + 1
        return events

    return play


async def compare(folder: Path, played: list[str], stop_at: str = "", pilot: PilotPlan = PILOT) -> list[PilotRun]:
    return [run async for run in run_pilot(pilot, folder, player(played, stop_at))]


def test_each_run_works_at_a_campaign_of_its_own() -> None:
    copies = {copy_of(PILOT, arm, pair) for arm in Arm for pair in range(PILOT.repetitions)}

    assert copies == {f"parser-speed-{arm}{n}" for arm in "ps" for n in (1, 2, 3)}


def test_parallel_run_is_the_round_as_planned() -> None:
    plan = round_of(PILOT, Arm.PARALLEL, 0, 0, PLAN.incumbent)

    assert steps(PILOT, Arm.PARALLEL) == 1
    assert plan == PLAN.model_copy(update={"campaign": "parser-speed-p1"})


def test_serial_run_has_one_lane_per_round_in_the_frozen_order_each_from_the_new_incumbent() -> None:
    plans = [round_of(PILOT, Arm.SERIAL, 1, step, f"{step}" * 40) for step in range(steps(PILOT, Arm.SERIAL))]

    assert [[lane.id for lane in plan.lanes] for plan in plans] == [["tokens"], ["cache"], ["output"]]
    assert [plan.lanes[0] for plan in plans] == list(PLAN.lanes)
    assert [plan.incumbent[0] for plan in plans] == ["0", "1", "2"]
    assert {(plan.campaign, plan.gates, plan.devices) for plan in plans} == {
        ("parser-speed-s2", PLAN.gates, PLAN.devices)
    }


def test_facts_of_a_parallel_run() -> None:
    events = story(round_of(PILOT, Arm.PARALLEL, 0, 0, PLAN.incumbent))

    found = facts(Arm.PARALLEL, 0, [events], RULE)

    assert found.reached_s == found.ended_s > THINK_S
    assert [lane.submissions for lane in found.lanes] == [1, 1, 1]
    assert [lane.agent_s for lane in found.lanes] == pytest.approx([THINK_S] * 3, abs=10)  # launches are staggered
    assert found.composed == 3
    assert found.waits_s == tuple(sorted(found.waits_s))
    assert found.gain == pytest.approx(0.58, abs=0.02)  # -log(0.8 · 0.78 · 0.9)
    assert len(found.interactions) == 2
    assert found.rejected == {}
    assert 0 < found.busy < 0.5


async def test_serial_run_adds_up_what_its_rounds_gained(tmp_path: Path) -> None:
    played: list[str] = []

    runs = await compare(tmp_path, played)

    serial = next(run for run in runs if run.arm is Arm.SERIAL)
    assert len(serial.rounds) == 3
    assert serial.gain == pytest.approx(0.58, abs=0.02)
    assert serial.reached_s is not None
    assert serial.reached_s < serial.ended_s


def test_measuring_ends_when_the_device_is_free_and_not_with_the_validators_word() -> None:
    at_once = story(PLAN)
    late = [_validated(event, VALIDATOR_S) if isinstance(event, TicketMeasured) else event for event in story(PLAN)]

    plain, found = (facts(Arm.PARALLEL, 0, [events], RULE) for events in (at_once, late))

    lost = [one.measure_s - other.measure_s for one, other in zip(plain.lanes, found.lanes, strict=True)]
    worked = [other.agent_s - one.agent_s for one, other in zip(plain.lanes, found.lanes, strict=True)]
    assert lost == pytest.approx([VALIDATOR_S] * 3, abs=0.01)
    assert worked == pytest.approx([VALIDATOR_S] * 3, abs=0.01)


def _validated(event: TicketMeasured, seconds: float) -> Event:
    """The same verdict after a validator that took so long."""
    measurement = event.measurement.model_copy(update={"free_at": event.time - seconds})
    return event.model_copy(update={"measurement": measurement})


def test_gain_below_the_target_is_censored() -> None:
    high = RULE.model_copy(update={"target": 0.9})

    found = facts(Arm.PARALLEL, 0, [story(PLAN)], high)

    assert found.reached_s is None
    assert found.gain > 0


def test_target_in_the_unit_is_a_share_of_the_first_incumbents_value() -> None:
    steps_ = ((100.0, 12.0), (88.0, 10.0))  # 22 in all, of which 24 are asked for
    ledgers = [
        _in_the_unit(story(round_of(PILOT, Arm.SERIAL, 0, step, PLAN.incumbent), 1000 * step), *worth)
        for step, worth in enumerate(steps_)
    ]

    found = facts(Arm.SERIAL, 0, ledgers, RULE)

    assert (found.gain, found.reached_s) == (22, None)
    assert facts(Arm.SERIAL, 0, ledgers, RULE.model_copy(update={"fraction": 0.73})).reached_s == found.ended_s


def _in_the_unit(events: list[Event], base: float, gain: float) -> list[Event]:
    """The same with a rerun that showed this difference."""
    shown = {"scale": Scale.DIFFERENCE, "base": base, "gain": gain}
    for place, event in enumerate(events):
        if isinstance(event, HeadRerun):
            evaluation = event.rerun.evaluation.model_copy(update=shown)
            rerun = event.rerun.model_copy(update={"evaluation": evaluation})
            events[place] = event.model_copy(update={"rerun": rerun})
    return events


def test_what_was_rejected_and_what_was_lost_in_composition_is_counted() -> None:
    found = facts(Arm.PARALLEL, 0, [stories.composed()], RULE)

    assert found.lost == 1
    assert found.rejected == {"build_failed": 1, "link_escapes": 1, "protected_path": 1, "regression": 1}
    assert found.tokens is not None


def test_round_that_gained_nothing_has_no_gain() -> None:
    found = facts(Arm.PARALLEL, 0, [stories.fruitless()], RULE)

    assert (found.gain, found.error, found.reached_s) == (0, None, None)


def test_only_the_rerun_of_what_was_accepted_counts() -> None:
    found = facts(Arm.PARALLEL, 0, [stories.fallen_back()], RULE)

    assert found.gain == pytest.approx(0.07, abs=0.02)


async def test_runs_are_made_in_turns(tmp_path: Path) -> None:
    played: list[str] = []

    await compare(tmp_path, played)

    arms = [run.removeprefix("round-parser-speed-")[:2] for run in played]
    assert [after for before, after in pairwise(["", *arms]) if before != after] == ["p1", "s1", "s2", "p2", "p3", "s3"]


async def test_interrupted_pilot_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    played: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        await compare(tmp_path, played, stop_at="round-parser-speed-s2-cache")
    before = len(played)

    runs = await compare(tmp_path, played)

    assert played[before:][0] == "round-parser-speed-s2-tokens"
    assert runs == await compare(tmp_path, [])
    assert len({run for run in played if "-p1-" in run or "-s1-" in run}) == 4
    assert len(runs) == 6


async def test_changed_pilot_under_the_same_id_is_refused(tmp_path: Path) -> None:
    await compare(tmp_path, [])
    changed = PILOT.model_copy(update={"rule": RULE.model_copy(update={"threshold": 0.5})})

    with pytest.raises(RefusedError, match="begun from another plan"):
        await compare(tmp_path, [], pilot=changed)


async def test_round_without_a_decision_stops_the_pilot(tmp_path: Path) -> None:
    async def play(plan: RoundPlan) -> list[Event]:
        it = Story(plan, run=run_of(plan))
        it.ready()
        it.stop("failed", RunReason.INCUMBENT_FAILS)
        return it.events

    with pytest.raises(RefusedError, match="ended without a decision: incumbent_fails"):
        [run async for run in run_pilot(PILOT, tmp_path, play)]
    assert [path.name for path in tmp_path.iterdir()] == ["pilot.json"]


async def test_round_that_was_started_from_another_plan_stops_the_pilot(tmp_path: Path) -> None:
    async def play(plan: RoundPlan) -> list[Event]:
        return story(plan.model_copy(update={"deadline_s": 1.0}))

    with pytest.raises(RefusedError, match="another plan"):
        [run async for run in run_pilot(PILOT, tmp_path, play)]


async def test_report_tells_the_verdict_every_run_and_the_model(tmp_path: Path) -> None:
    shown = report(PILOT, await compare(tmp_path, []))

    assert shown.decision.verdict is Verdict.FASTER
    assert shown.model is not None
    assert shown.model.expected.speedup == pytest.approx(shown.model.speedup, rel=0.25)
    text = "\n".join(report_lines(shown, Direction.LOWER))
    assert "workflow-policy comparison" in text
    assert all(f"\n{arm}{n} " in text for arm in "PS" for n in (1, 2, 3))
    document = json.loads(shown.model_dump_json())
    assert len(document["runs"]) == 6
    assert document["measures"]["device_s"]["P"]["median"] > 0


async def test_report_of_a_pilot_that_has_just_begun_decides_nothing(tmp_path: Path) -> None:
    runs = (await compare(tmp_path, []))[:1]

    shown = report(PILOT, runs)

    assert shown.decision.verdict is Verdict.OPEN
    assert shown.model is None
    assert "not distinguishable" in "\n".join(report_lines(shown, Direction.LOWER))


def test_replay_submits_what_was_queued_lane_by_lane_and_starts_no_agent() -> None:
    ledger = stories.composed()

    plan = replay_of("round-parser-r1", ledger)

    assert plan.campaign == "parser-replay"
    assert [lane.id for lane in plan.lanes] == ["tokens", "cache", "output"]
    assert all(lane.agent.startswith("cmd:for c in ") for lane in plan.lanes)
    assert len(plan.lanes[0].agent.split(";")[0].split()) == len(["cmd:for", "c", "in"]) + 2
    assert plan.gates == PLAN.gates


def test_replays_of_campaigns_with_long_names_keep_apart() -> None:
    names = [f"{'c' * 39}{last}" for last in "ab"]
    ledgers = [story(PLAN.model_copy(update={"campaign": name})) for name in names]

    one, other = (replay_of("round-x", ledger).campaign for ledger in ledgers)

    assert one != other
    assert len(one) == len(other) == MAX_NAME
    assert one.startswith("ccc")
    assert one.endswith("-replay")


@pytest.mark.parametrize("name", ["unmeasurable", "live", "begun"])
def test_round_that_was_not_decided_is_not_replayed(name: str) -> None:
    with pytest.raises(RefusedError):
        replay_of("round-parser-r1", stories.STORIES[name]())


def test_queue_is_measured_from_the_first_ticket_to_the_last_verdict() -> None:
    ledger = story(PLAN)

    found = queue_of("round-parser-r1", ledger)

    decided = next(event for event in ledger if isinstance(event, RoundDecided))
    assert found.tickets == 3
    assert 0 < found.held_s < found.span_s < decided.seq * 1000
    assert 0 < found.idle < 1
