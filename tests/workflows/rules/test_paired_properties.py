"""What no evaluation of a measurement may depend on."""

from __future__ import annotations

from math import exp, expm1
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.round.plan import Direction
from orch.workflows.model.round.trial import Evaluation, Judgement
from orch.workflows.rules.paired import evaluate

from ..measured import COUNT, FOUR, MS, measurement, noise, pair

TWO_PERCENT = noise(0.02)

values = st.floats(min_value=0.5, max_value=2.0)
four = st.lists(st.tuples(values, values), min_size=4, max_size=4)
MIRRORED = {Judgement.PASSED: Judgement.REGRESSION, Judgement.INCONCLUSIVE: Judgement.REGRESSION}


def numbers(got: Evaluation) -> dict[str, Any]:
    return {name: getattr(got, name) for name in ("gain", "error", "needed", "order_effect")}


def same(one: Evaluation, other: Evaluation) -> bool:
    return all(value == pytest.approx(numbers(other)[name], abs=1e-9) for name, value in numbers(one).items())


@given(four, st.floats(min_value=1e-3, max_value=1e3))
def test_log_gains_do_not_depend_on_the_unit(pairs: list[tuple[float, float]], factor: float) -> None:
    metric = COUNT  # a clock's steps would be those of the unit
    scaled = evaluate(measurement([(a * factor, b * factor) for a, b in pairs]), metric, FOUR, TWO_PERCENT)
    assert same(evaluate(measurement(pairs), metric, FOUR, TWO_PERCENT), scaled)


@given(four)
def test_swapping_the_sides_negates_the_gain(pairs: list[tuple[float, float]]) -> None:
    one = evaluate(measurement(pairs), COUNT, FOUR, TWO_PERCENT)
    other = evaluate(measurement([(b, a) for a, b in pairs]), COUNT, FOUR, TWO_PERCENT)
    assert one.gain == pytest.approx(-(other.gain or 0))
    assert one.error == pytest.approx(other.error)
    if one.verdict in MIRRORED:
        assert other.verdict is MIRRORED[one.verdict]


@given(four)
def test_lower_and_higher_are_better_are_mirror_images(pairs: list[tuple[float, float]]) -> None:
    higher = COUNT.model_copy(update={"direction": Direction.HIGHER})
    one = evaluate(measurement(pairs), COUNT, FOUR, TWO_PERCENT)
    other = evaluate(measurement([(1 / a, 1 / b) for a, b in pairs]), higher, FOUR, TWO_PERCENT)
    assert same(one, other)


@given(four.flatmap(lambda pairs: st.tuples(st.just(pairs), st.permutations(range(4)))))
def test_the_order_in_which_pairs_are_listed_is_irrelevant(case: tuple[list[tuple[float, float]], list[int]]) -> None:
    pairs, order = case
    listed = [pair(index, *each) for index, each in enumerate(pairs)]
    shuffled = measurement([listed[index] for index in order])
    one, other = (evaluate(facts, MS, FOUR, TWO_PERCENT) for facts in (measurement(listed), shuffled))
    assert one == other


@given(four, st.floats(min_value=0.5, max_value=2.0), st.floats(min_value=-0.05, max_value=0.05))
def test_what_second_place_costs_and_a_straight_drift_cancel_out(
    pairs: list[tuple[float, float]], second: float, drift: float
) -> None:
    def pushed(index: int, a: float, b: float) -> tuple[float, float]:
        early, late = exp(drift * 2 * index), second * exp(drift * (2 * index + 1))
        return (a * late, b * early) if index % 2 else (a * early, b * late)

    plain = evaluate(measurement(pairs), COUNT, FOUR, TWO_PERCENT)
    moved = evaluate(measurement([pushed(i, *each) for i, each in enumerate(pairs)]), COUNT, FOUR, TWO_PERCENT)
    assert moved.gain == pytest.approx(plain.gain, abs=1e-9)


@given(four, st.floats(min_value=0, max_value=0.5))
def test_a_tighter_gate_never_passes_what_a_looser_one_does_not(
    pairs: list[tuple[float, float]], rollback: float
) -> None:
    facts = measurement(pairs)
    tight = FOUR.model_copy(update={"rollback": rollback, "sigmas": 3.0})
    loose_passes = evaluate(facts, MS, FOUR, TWO_PERCENT).passed
    assert loose_passes or not evaluate(facts, MS, tight, TWO_PERCENT).passed
    if evaluate(facts, MS, tight, TWO_PERCENT).passed:
        gained = -expm1(-(evaluate(facts, MS, tight, TWO_PERCENT).gain or 0))
        assert gained >= rollback - 1e-12
