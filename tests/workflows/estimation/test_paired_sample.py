"""What the pairs of a measurement say, and every way in which they say nothing."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import pytest

from orch.workflows.estimation.paired_sample import PairedSample, broken, read
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.plan import Gates
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Measurement, Pair, Scale

from ..measured import COUNT, FAILED, FOUR, MS, OK, RATE, measurement, pair, sample

TIMED_OUT = Exit(kind=ExitKind.TIMED_OUT, detail="600 s")
HALVES = [(2.0, 1.0), (4.0, 2.0), (8.0, 8.0), (6.0, 6.0)]
ONE_SIDED = "the pairs are not half in one order and half in the other"


def good(facts: Measurement, gates: Gates = FOUR, scale: Scale | None = None, metric: Any = MS) -> PairedSample:
    got = read(facts, metric, gates, scale)
    assert isinstance(got, PairedSample), got
    return got


def test_a_gain_is_the_mean_log_ratio_of_base_to_candidate() -> None:
    got = good(measurement(HALVES))
    assert got.scale is Scale.LOG
    assert got.differences == pytest.approx((log(2), log(2), 0, 0))
    assert got.gain == pytest.approx(log(2) / 2)
    assert got.spread == pytest.approx(log(2) / sqrt(3))  # residuals are ± ln 2 / 2, four of them, n - 1 = 3


def test_where_higher_is_better_the_ratio_is_the_other_way_round() -> None:
    assert good(measurement(HALVES), metric=RATE).gain == pytest.approx(-log(2) / 2)


def test_a_value_that_is_not_positive_makes_all_of_them_differences() -> None:
    got = good(measurement([(2, 1), (4, 2), (8, 8), (6, 0)]))
    assert (got.scale, got.differences, got.gain) == (Scale.DIFFERENCE, (1, 2, 0, 6), 2.25)
    assert good(measurement([(-2, -3)] * 4)).gain == 1
    assert good(measurement(HALVES), scale=Scale.DIFFERENCE).differences == (1, 2, 0, 0)


def test_a_sides_value_is_the_median_of_its_runs() -> None:
    got = good(measurement([((5, 90, 7), (3, 1, 2))] * 4), Gates(pairs=4, repetitions=3))
    assert (got.base, got.candidate) == ((7,) * 4, (2,) * 4)


def test_the_order_effect_is_what_the_order_changes_and_its_error_is_of_the_spread_within_an_order() -> None:
    # differences 1 5 3 9: the pairs with A first have 1 and 3, the others 5 and 9, so residuals are ∓1 and ∓2
    got = good(measurement([(1, 0), (5, 0), (3, 0), (9, 0)]))
    assert (got.gain, got.order_effect) == (4.5, 5.0)
    assert got.order_error == pytest.approx(sqrt(10 / 2) * sqrt(1 / 2 + 1 / 2))


def test_the_step_of_a_clock_is_the_finest_decimal_it_is_written_with() -> None:
    for values, step in (((0.05, 0.4), 0.01), ((1200.0, 900.0), 100), ((1e-05, 0.25), 1e-05), ((2e22, 3e21), 1e21)):
        assert good(measurement([values] * 4)).step == pytest.approx(step, rel=1e-12)
    assert good(measurement([(1200, 900)] * 4), metric=COUNT).step == 0
    assert good(measurement([(0, 0)] * 4)).step == 0


def test_the_difference_of_an_amount_is_relative_in_logs_and_itself_elsewhere() -> None:
    assert good(measurement([(4.0, 2.0)] * 4)).in_scale(2) == pytest.approx(log(2))
    assert good(measurement([(4.0, 0.0)] * 4)).in_scale(2) == 2


def test_amounts_are_told_as_a_percentage_or_in_the_unit() -> None:
    assert good(measurement([(4.0, 2.0)] * 4)).shown(log(2)) == "50.00 %"
    assert good(measurement([(2.0, 4.0)] * 4), metric=RATE).shown(log(2)) == "100.00 %"
    assert good(measurement([(4.0, 0.0)] * 4)).shown(2.5) == "2.5 ms"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"busy": "cpu 3 is taken by round-x"}, "nothing was measured: the device is busy (cpu 3 is taken by round-x)"),
        ({"failed": Cause.BUILD_FAILED, "detail": "exit 2"}, "nothing was measured: build_failed: exit 2"),
        ({"failed": Cause.SMOKE_FAILED}, "nothing was measured: smoke_failed"),
        ({"failed": Cause.PROBE_FAILED, "side": "base"}, "nothing was measured: probe_failed of the base"),
    ],
)
def test_what_never_came_to_pairs_says_why(facts: dict[str, Any], why: str) -> None:
    assert broken(measurement(HALVES, **facts)) == why
    assert read(measurement(HALVES, **facts), MS, FOUR) == why


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (sample(None, flaw="the result file has NaN"), "the result file has NaN"),
        (sample(None, FAILED), "exit 3"),
        (sample(3.0, TIMED_OUT), "timed out (600 s)"),
    ],
)
def test_one_run_without_a_value_spoils_the_measurement(bad: Any, told: str) -> None:
    spoilt = Pair(index=3, order="BA", a=(sample(2.0, OK),), b=(bad,))
    facts = measurement([*(pair(i, 2, 1) for i in range(3)), spoilt])
    assert read(facts, MS, FOUR) == f"a run of pair 3, side B, gave no value: {told}"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (measurement([(2, 1)] * 3), "3 of 4 pairs are complete"),
        (measurement([], detail="its deadline passed"), "0 of 4 pairs are complete: its deadline passed"),
        (measurement([pair(index, 2, 1) for index in (0, 0, 1, 1)]), "a pair is there twice"),
        (
            measurement([pair(i, 2, 1) for i in (0, 1, 2, 4)]),
            "the pairs are not half in one order and half in the other",
        ),
        (measurement([(2, 1), (2, 1), ((2, 2), ()), (2, 1)]), "pair 2 has fewer runs of a side than 1"),
        (measurement([(2, 1), (2, -1), (2, 1), (2, 1)]), "the metric changes its sign: from -1 to 2 ms"),
        (measurement([(2, 1), ((2, -3, 2), 1), (2, 1), (2, 1)]), "the metric changes its sign: from -3 to 2 ms"),
        (measurement([(1e308, 1.0), (1e308, 1e-308)] * 2), None),
    ],
)
def test_what_is_missing_or_makes_no_sense_is_told(facts: Measurement, why: str | None) -> None:
    got = read(facts, MS, FOUR)
    assert got == why if why else isinstance(got, PairedSample)


def test_too_few_repetitions_are_missing_runs() -> None:
    got = read(measurement([((2, 2), (1, 1, 1))] * 4), MS, Gates(pairs=4, repetitions=3))
    assert got == "pair 0 has fewer runs of a side than 3"


def test_a_value_that_is_not_positive_cannot_be_compared_with_noise_in_logs() -> None:
    got = read(measurement([(2, 0)] * 4), MS, FOUR, Scale.LOG)
    assert got == "a value is 0 ms, but the noise was measured in log ratios"


def test_differences_that_no_double_can_hold_are_no_sample() -> None:
    facts = measurement([(1.7e308, 0.0), (0.0, 1.7e308)] * 2)
    assert read(facts, MS, FOUR) == "the values are too large to be compared"


def test_a_value_that_is_not_finite_is_no_sample() -> None:
    infinite = sample(1.0).model_copy(update={"value": float("inf")})
    facts = measurement([Pair(index=i, order=("AB", "BA")[i % 2], a=(infinite,), b=(infinite,)) for i in range(4)])
    assert read(facts, MS, FOUR) == "a value is not finite"
