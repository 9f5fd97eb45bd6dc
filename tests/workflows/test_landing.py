"""Composition of a round: what is measured for it, what a failed rerun leads to, and on which device set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import reduce
from typing import Any

import pytest

from orch.workflows.model.event import RunEnded
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.composition import StepResult
from orch.workflows.model.round.event import HeadRerun, PicksMade, RoundDecided, StepComposed
from orch.workflows.model.round.lane import Composed, MeasurePairs
from orch.workflows.model.round.trial import Judgement, Measurement

from .one_round import OneRound
from .round_host import RoundHost, gains, idle
from .round_plans import INCUMBENT, plan, sha

pytestmark = [pytest.mark.engine]

Make = Callable[..., Awaitable[OneRound]]

AGENTS = {"a": gains("x"), "b": gains("x"), "c": gains("x")}
FACTORS = {"a x": 0.8, "b x": 0.7, "c x": 0.9}
GUARD, TICKETS = 1, 3


def laid(*names: str) -> str:
    """The head with these on it."""
    return reduce(lambda head, name: sha(f"{head} {sha(name)}"), names, INCUMBENT)


def reason(one: OneRound) -> RunReason:
    ended = one.only(RunEnded)
    assert ended.reason is not None
    return ended.reason.code


def results(one: OneRound) -> dict[str, StepResult]:
    return {event.step.lane: event.step.result for event in one.all(StepComposed)}


def spoilt(*candidates: str, best: float = 1.0) -> Callable[[OneRound], None]:
    """Measured against the incumbent, these commits are worth no more than it is; their steps have shown more."""

    def arrange(one: OneRound) -> None:
        async def hook(name: str, request: Any) -> Measurement | None:
            if name == "measure_pairs" and request.base == INCUMBENT and request.candidate in candidates:
                return one.host.measured(request.model_copy(update={"candidate": INCUMBENT}))
            return None

        one.host.hook = hook

    return arrange


async def test_three_lanes_cost_two_step_measurements_and_a_rerun(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS), AGENTS, factors=FACTORS)
    await one.whole()

    assert len(one.host.of("measure_pairs")) == GUARD + TICKETS + 2 + 1
    assert [pick.lane for pick in one.only(PicksMade).picks] == ["b", "a", "c"]
    first, second, third = one.all(StepComposed)
    assert (first.step.result, first.measurement) == (StepResult.FIRST, None)
    assert first.step.evaluation == one.only(PicksMade).picks[0].evaluation
    assert [(step.step.base, step.step.commit) for step in (second, third)] == [
        (laid("b x"), laid("b x", "a x")),
        (laid("b x", "a x"), laid("b x", "a x", "c x")),
    ]
    rerun = one.only(HeadRerun)
    assert (rerun.measurement.base, rerun.measurement.candidate) == (INCUMBENT, laid("b x", "a x", "c x"))
    assert one.only(RoundDecided).chain == (laid("b x"), laid("b x", "a x"), laid("b x", "a x", "c x"))
    assert reason(one) is RunReason.DONE


async def test_lane_that_gains_nothing_on_the_head_is_skipped_and_the_next_one_laid_on_the_head_before(
    a_round: Make,
) -> None:
    one = await a_round(plan(*AGENTS), AGENTS, factors=FACTORS)
    one.host.values[laid("b x", "a x")] = 0.7
    await one.whole()

    assert results(one) == {"b": StepResult.FIRST, "a": StepResult.SKIPPED, "c": StepResult.ADDED}
    assert one.all(StepComposed)[-1].step.base == laid("b x")
    assert one.only(RoundDecided).lanes == ("b", "c")


async def test_lane_that_cannot_lie_beside_the_head_is_skipped_unmeasured(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS), AGENTS, factors=FACTORS)

    async def hook(name: str, request: Any) -> Composed | None:
        if name == "compose_step" and request.lane == "a":
            return Composed(commit=request.head, tree=sha(f"tree of {request.head}"), clash="x and X are one file")
        return None

    one.host.hook = hook
    await one.whole()

    assert results(one) == {"b": StepResult.FIRST, "a": StepResult.SKIPPED, "c": StepResult.ADDED}
    assert len(one.host.of("measure_pairs")) == GUARD + TICKETS + 1 + 1
    assert one.only(RoundDecided).chain == (laid("b x"), laid("b x", "c x"))
    (record,) = one.host.of("record_round")
    assert [row.why for row in record.revisions if row.lane == "a"] == [
        "passed alone, but not on the head of the lanes before it: x and X are one file"
    ]


async def test_one_accepted_lane_is_rerun_all_the_same(a_round: Make) -> None:
    agents = {"a": gains("x"), "b": idle}
    one = await a_round(plan(*agents), agents, factors=FACTORS)
    await one.whole()

    rerun = one.only(HeadRerun)
    assert (rerun.rerun.lanes, rerun.rerun.fallback) == (("a",), False)
    assert rerun.measurement.ordinal not in {GUARD, GUARD + 1}
    assert len(one.host.of("measure_pairs")) == GUARD + 1 + 1


async def test_head_that_does_not_pass_again_falls_back_to_the_best_lane_once(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS), AGENTS, factors=FACTORS)
    spoilt(laid("b x", "a x", "c x"))(one)
    await one.whole()

    head, single = one.all(HeadRerun)
    assert (head.rerun.evaluation.verdict, head.rerun.fallback) == (Judgement.NOT_MEASURED, False)
    assert (single.rerun.lanes, single.rerun.fallback, single.rerun.commit) == (("b",), True, laid("b x"))
    decided = one.only(RoundDecided)
    assert (decided.lanes, decided.chain, decided.incumbent) == (("b",), (laid("b x"),), laid("b x"))
    assert decided.tree == sha(f"tree of {laid('b x')}")


async def test_fallback_that_fails_leaves_the_incumbent(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS), AGENTS, factors=FACTORS)
    spoilt(laid("b x", "a x", "c x"), laid("b x"))(one)
    await one.whole()

    assert [rerun.rerun.fallback for rerun in one.all(HeadRerun)] == [False, True]
    assert one.only(RoundDecided).incumbent is None
    assert reason(one) is RunReason.NO_GAIN


async def test_strict_composition_has_no_fallback(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS, composition="strict"), AGENTS, factors=FACTORS)
    spoilt(laid("b x", "a x", "c x"))(one)
    await one.whole()

    assert len(one.all(HeadRerun)) == 1
    assert reason(one) is RunReason.NO_GAIN


async def test_single_lane_that_does_not_pass_again_is_not_tried_a_third_time(a_round: Make) -> None:
    agents = {"a": gains("x")}
    one = await a_round(plan(*agents), agents, factors=FACTORS)
    spoilt(laid("a x"))(one)
    await one.whole()

    assert len(one.all(HeadRerun)) == 1
    assert reason(one) is RunReason.NO_GAIN


async def test_without_a_gain_nothing_is_composed_and_the_round_is_recorded(a_round: Make) -> None:
    agents = {"a": gains("x"), "b": idle}
    one = await a_round(plan(*agents), agents, factors={"a x": 1.0})
    await one.whole()

    assert one.only(PicksMade).picks == ()
    assert one.host.of("compose_step") == []
    (record,) = one.host.of("record_round")
    assert record.incumbent is None
    assert reason(one) is RunReason.NO_GAIN


async def test_composition_takes_the_device_set_that_is_free(a_round: Make) -> None:
    one = await a_round(plan(*AGENTS, devices=("first", "second")), AGENTS, factors=FACTORS)
    _busy_from_composition_on(one.host, "first")
    await one.whole()

    steps = [event.measurement for event in one.all(StepComposed) if event.measurement]
    assert {found.device for found in (*steps, one.only(HeadRerun).measurement)} == {"second"}
    assert reason(one) is RunReason.DONE


def _busy_from_composition_on(host: RoundHost, device: str) -> None:
    async def hook(name: str, request: MeasurePairs) -> Measurement | None:
        composing = bool(host.of("compose_step"))
        return host.measured(request, pairs=(), busy="taken") if composing and _is_on(name, request, device) else None

    host.hook = hook


def _is_on(name: str, request: MeasurePairs, device: str) -> bool:
    return name == "measure_pairs" and request.device == device
