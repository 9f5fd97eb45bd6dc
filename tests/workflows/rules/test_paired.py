"""Whether a candidate is better: each verdict by numbers worked out by hand."""

from __future__ import annotations

from math import exp, log

import pytest

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.plan import Gates, Metric
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement, Measurement, Noise, Pair, Scale
from orch.workflows.rules.paired import evaluate

from ..measured import COUNT, EIGHT, FOUR, MS, RATE, measurement, noise, pair

TWO_PERCENT = noise(0.02)
"""Of eight pairs: 7 degrees of freedom, so 2.43 standard errors are asked for, and of four pairs one is 0.01."""


def steady(base: float, candidate: float, pairs: int = 4) -> Measurement:
    return measurement([(base, candidate)] * pairs)


def verdict(facts: Measurement, gates: Gates = FOUR, known: Noise | None = TWO_PERCENT, metric: Metric = MS) -> str:
    return evaluate(facts, metric, gates, known).verdict.value


@pytest.mark.parametrize(
    ("candidate", "rollback", "expected"),
    [
        (95, 0.0, "passed"),  # ln(100/95) is 0.0513, of which 0.0243 is asked for
        (97.5, 0.0, "passed"),  # 0.0253
        (97.7, 0.0, "not_measured"),  # 0.0233
        (100, 0.0, "not_measured"),
        (102.3, 0.0, "not_measured"),  # -0.0227
        (102.5, 0.0, "regression"),  # -0.0247
        (95, 0.06, "below_rollback"),  # at most 94 of 100
        (95, 0.049, "passed"),
        (95, 0.051, "below_rollback"),
        (97.7, 0.06, "not_measured"),
        (110, 0.06, "regression"),
    ],
)
def test_a_gain_is_one_by_standard_errors_of_the_noise_and_by_the_rollback_line(
    candidate: float, rollback: float, expected: str
) -> None:
    assert verdict(steady(100, candidate), FOUR.model_copy(update={"rollback": rollback})) == expected


def test_the_numbers_of_an_evaluation_are_those_worked_out_by_hand() -> None:
    got = evaluate(steady(100, 95), MS, FOUR, TWO_PERCENT)
    assert (got.scale, got.pairs, got.base, got.candidate) == (Scale.LOG, 4, 100, 95)
    assert got.gain == pytest.approx(0.0512933, abs=1e-7)
    assert got.error == pytest.approx(0.01)
    assert got.needed == pytest.approx(0.0243, abs=5e-5)
    assert (got.gain_unit, got.order_effect) == (5, 0)
    assert got.why == "gain 5.00 % in 4 pairs, 5.1 standard errors of 1.00 %, 2.40 % asked for; order effect 0.00 %"


@pytest.mark.parametrize(("rate", "expected"), [(106, "below_rollback"), (107.1, "passed"), (93, "regression")])
def test_where_higher_is_better_the_rollback_line_lies_above_the_base(rate: float, expected: str) -> None:
    gates = FOUR.model_copy(update={"rollback": 0.07})
    got = evaluate(steady(100, rate), RATE, gates, TWO_PERCENT)
    assert (got.verdict, got.gain_unit) == (expected, rate - 100)


def test_differences_are_held_against_noise_and_rollback_line_in_the_unit() -> None:
    known = noise(4.0, scale=Scale.DIFFERENCE)  # an error of 2 ms, of which 2.43 are asked for
    assert verdict(steady(100, 95.2), known=known) == "not_measured"
    assert verdict(steady(100, 95), known=known) == "passed"
    assert verdict(steady(100, 95), FOUR.model_copy(update={"rollback": 0.0501}), known) == "below_rollback"
    assert verdict(steady(-100, -105), known=noise(4.0, scale=Scale.DIFFERENCE, base=-100)) == "passed"
    got = evaluate(steady(100, 95), MS, FOUR, known)
    assert (got.scale, got.gain, got.error) == (Scale.DIFFERENCE, 5, 2)
    assert "gain 5 ms in 4 pairs, 2.5 standard errors of 2 ms" in got.why


@pytest.mark.parametrize(
    ("sigmas", "pairs", "factor"),
    [(2, 8, 2.43), (2, 4, 3.31), (2, 2, 13.97), (2, 21, 2.13), (3, 8, 3.0), (3, 4, 3.31), (10, 8, 10.0)],
)
def test_few_pairs_of_noise_ask_for_more_standard_errors_and_the_gates_never_for_fewer(
    sigmas: float, pairs: int, factor: float
) -> None:
    gates = FOUR.model_copy(update={"sigmas": sigmas})
    got = evaluate(steady(100, 95), MS, gates, noise(0.02, pairs))
    assert got.needed == pytest.approx(0.01 * factor, abs=0.01 * 0.006)


def test_pooled_noise_has_a_degree_of_freedom_less_for_each_measurement() -> None:
    known = Noise(scale=Scale.LOG, sigma=0.02, pairs=32, measurements=2, base=100)
    assert evaluate(steady(100, 95), MS, FOUR, known).needed == pytest.approx(0.0209, abs=5e-5)  # 30 of them: 2.09


def test_the_spread_of_these_very_pairs_counts_where_it_asks_for_more_than_the_noise() -> None:
    # differences 0, 0, 0.2, 0.2: mean 0.1, deviation 0.2 / sqrt(3), error 0.2 / sqrt(12), and 3.31 with 3 degrees
    spread = measurement([(exp(d), 1) for d in (0.0, 0.0, 0.2, 0.2)])
    got = evaluate(spread, MS, FOUR, TWO_PERCENT)
    assert got.gain == pytest.approx(0.1)
    assert got.error == pytest.approx(0.0577350, abs=1e-7)
    assert got.needed == pytest.approx(0.191, abs=0.0004)
    assert got.verdict is Judgement.NOT_MEASURED


def test_one_spike_in_the_base_is_no_gain_though_the_noise_was_quiet() -> None:
    spiked = measurement([(100, 100)] * 7 + [(140, 100)])
    got = evaluate(spiked, MS, EIGHT, noise(0.005))
    assert got.gain == pytest.approx(log(1.4) / 8)  # 0.042, while eight pairs of this noise would ask for 0.0043
    assert got.verdict is Judgement.NOT_MEASURED


def differences(*values: float) -> Measurement:
    return measurement([(max(value, 0), max(-value, 0)) for value in values])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # With A first 8.5, with B first 1.5: the order effect is 7 beside a gain of 5. The deviation of all is 3.78, so
        # 3.25 is asked for; within an order it is 0.577 with 6 degrees, so 3.71 * 0.408 is what noise makes of nothing.
        ((9, 1, 8, 2, 9, 1, 8, 2), "inconclusive"),
        ((1, 9, 2, 8, 1, 9, 2, 8), "inconclusive"),
        ((-9, -1, -8, -2, -9, -1, -8, -2), "regression"),
        # 8.5 and 3.5: an order effect of 5 beside a gain of 6.
        ((9, 3, 8, 4, 9, 3, 8, 4), "passed"),
        # 7 and 2: an order effect of 5 beside a gain of 4.5 of which 3.41 is asked for, but within an order the
        # deviation is 3.16, so that noise makes up to 3.71 * 2.24 of nothing.
        ((9, 1, 9, 1, 9, 1, 1, 5), "passed"),
        # 9 and -5: the gain of 2 is none, as 0.459 of the order effect is asked for.
        ((9, -5, 9, -5, 9, -5, 9, -5), "not_measured"),
    ],
)
def test_what_first_and_second_place_cost_makes_a_gain_inconclusive_where_it_is_seen_and_more(
    values: tuple[float, ...], expected: str
) -> None:
    assert verdict(differences(*values), EIGHT, noise(1.0, scale=Scale.DIFFERENCE), COUNT) == expected


@pytest.mark.parametrize("gain", [1e-6, 0.01, 0.5])
def test_without_any_noise_every_gain_of_a_count_is_one(gain: float) -> None:
    exact = noise(0.0, base=1e6)
    assert verdict(steady(1e6, 1e6 * (1 - gain)), known=exact, metric=COUNT) == "passed"
    assert verdict(steady(1e6, 1e6 * (1 + gain)), known=exact, metric=COUNT) == "regression"


def test_without_any_noise_the_rollback_line_and_the_arithmetic_of_doubles_remain() -> None:
    exact = noise(0.0, base=1e6)
    assert verdict(steady(1e6, 1e6), known=exact, metric=COUNT) == "not_measured"
    assert verdict(steady(1e6, 1e6 * (1 - 1e-12)), known=exact, metric=COUNT) == "not_measured"
    gates = FOUR.model_copy(update={"rollback": 0.02})
    assert verdict(steady(1e6, 0.99e6), gates, exact, COUNT) == "below_rollback"
    got = evaluate(steady(12, 11), COUNT, FOUR, noise(0.0, base=12))
    assert (got.verdict, got.error) == (Judgement.PASSED, 0)
    assert got.why == "gain 8.33 % in 4 pairs without noise, 0.00 % asked for; order effect 0.00 %"


@pytest.mark.parametrize(
    ("base", "candidate", "expected"),
    [
        (0.05, 0.04, "not_measured"),  # one step of 0.01 s may be 0.0451 beside 0.0449
        (0.05, 0.03, "passed"),
        (0.05, 0.06, "not_measured"),
        (0.05, 0.08, "regression"),
        (0.0512, 0.0509, "passed"),  # three steps of 0.0001 s
    ],
)
def test_a_clock_without_noise_may_be_coarse_so_one_of_its_steps_is_no_gain(
    base: float, candidate: float, expected: str
) -> None:
    seconds = MS.model_copy(update={"unit": "s"})
    assert verdict(steady(base, candidate), known=noise(0.0, base=0.05), metric=seconds) == expected


def test_a_coarse_clock_that_shows_no_noise_in_a_a_pairs_does_not_pass_a_step_now_and_then() -> None:
    flips = measurement([(0.05, 0.05)] * 6 + [(0.06, 0.05)] * 2)
    got = evaluate(flips, MS.model_copy(update={"unit": "s"}), EIGHT, noise(0.0, base=0.05))
    assert got.gain == pytest.approx(log(1.2) / 4)
    assert got.verdict is Judgement.NOT_MEASURED


def test_noise_that_flickers_over_a_clocks_step_averages_its_rounding_out() -> None:
    # steps of 1 ms, and every other pair differs by one: half a step with a deviation of half a step, in 64 pairs
    values = [(101, 100), (101, 100), (99, 99), (99, 99)] * 16
    assert verdict(measurement(values), Gates(pairs=64, repetitions=1), noise(0.005, 64)) == "passed"


@pytest.mark.parametrize(
    ("facts", "known", "why"),
    [
        (steady(100, 90).model_copy(update={"failed": Cause.BUILD_FAILED}), TWO_PERCENT, "build_failed"),
        (steady(100, 90).model_copy(update={"busy": "cpu 2"}), TWO_PERCENT, "busy (cpu 2)"),
        (steady(100, 90, pairs=2), TWO_PERCENT, "2 of 4 pairs"),
        (steady(100, 90), None, "no noise of A/A pairs"),
        (measurement([(100, 90)] * 3 + [(100, -90)]), noise(1.0, scale=Scale.DIFFERENCE), "changes its sign"),
        (
            steady(-100, -110),
            noise(1.0, scale=Scale.DIFFERENCE),
            "changed its sign since the noise was measured at 100",
        ),
        (measurement([(100, 90)] * 3 + [(100, 0)]), TWO_PERCENT, "noise was measured in log ratios"),
    ],
)
def test_what_cannot_be_judged_is_unevaluable_and_says_why(facts: Measurement, known: Noise | None, why: str) -> None:
    got = evaluate(facts, MS, FOUR, known)
    assert (got.verdict, got.gain, got.passed) == (Judgement.UNEVALUABLE, None, False)
    assert why in got.why


def test_the_largest_differences_of_doubles_are_gains_like_others() -> None:
    assert verdict(steady(1.7e308, 0.0), known=noise(1.0, scale=Scale.DIFFERENCE)) == "passed"


def test_a_result_that_the_validator_refused_is_invalid_whatever_was_gained_and_however_few_pairs() -> None:
    refused = Exit(kind=ExitKind.FAILED, number=1)
    for pairs in (4, 1, 0):
        got = evaluate(steady(100, 50, pairs).model_copy(update={"invalid": refused}), MS, FOUR, TWO_PERCENT)
        assert (got.verdict, got.why) == (Judgement.INVALID, "the validator refused the result: exit 1")


def test_a_validator_that_refuses_the_base_too_says_nothing_of_the_candidate() -> None:
    refused = {"invalid": Exit(kind=ExitKind.FAILED, number=1), "side": "base"}
    got = evaluate(steady(100, 50).model_copy(update=refused), MS, FOUR, TWO_PERCENT)
    assert got.verdict is Judgement.UNEVALUABLE
    assert got.why == "the validator refused the incumbent's own result: exit 1"


def test_a_failed_run_stands_before_what_the_validator_said() -> None:
    broken = pair(0, 100, 50).model_copy(update={"b": ()})
    crashed = Pair.model_validate(broken.model_dump() | {"b": [{"value": None, "exit": {"kind": "timed_out"}}]})
    facts = measurement([crashed], invalid=Exit(kind=ExitKind.FAILED, number=1))
    assert verdict(facts) == "unevaluable"
