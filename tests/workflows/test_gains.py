"""Gains in percent of the metric, in its unit, and what stands beside them."""

from __future__ import annotations

from math import log

import pytest

from orch.workflows.gains import (
    error_text,
    evaluation_text,
    gain_text,
    noise_text,
    ratio_text,
    share,
    unit_text,
    value_text,
)
from orch.workflows.model.round.plan import Direction, Metric
from orch.workflows.model.round.trial import Evaluation, Judgement, Noise, Scale

LOWER = Metric(name="latency", direction=Direction.LOWER, unit="ms")
HIGHER = Metric(name="rate", direction=Direction.HIGHER, unit="1/s")


@pytest.mark.parametrize(
    ("metric", "ratio", "text"),
    [
        (LOWER, 100 / 80, "+20.0%"),
        (HIGHER, 100 / 80, "+25.0%"),
        (LOWER, 100 / 125, "-25.0%"),
        (HIGHER, 80 / 100, "-20.0%"),
        (LOWER, 1.0, "+0.00%"),
        (LOWER, 1 / 0.996, "+0.40%"),
        (LOWER, 1 / 0.99, "+1.0%"),
        (None, 100 / 80, "+20.0%"),
    ],
)
def test_a_log_ratio_is_a_share_of_the_bases_value(metric: Metric | None, ratio: float, text: str) -> None:
    assert gain_text(log(ratio), Scale.LOG, metric) == text


def test_a_gain_that_is_to_be_low_leaves_the_rest() -> None:
    assert share(log(2), Direction.LOWER) == pytest.approx(0.5)
    assert share(log(2), Direction.HIGHER) == pytest.approx(1.0)


def test_a_difference_is_told_in_the_unit() -> None:
    assert gain_text(-1.234567, Scale.DIFFERENCE, LOWER) == unit_text(-1.234567, LOWER) == "-1.235 ms"
    assert value_text(1234.5678, LOWER) == "1235 ms"


def test_what_is_unknown_is_a_stroke() -> None:
    unknown = Evaluation(verdict=Judgement.UNEVALUABLE)

    assert {gain_text(None, Scale.LOG, LOWER), unit_text(None, LOWER), value_text(None, LOWER)} == {"-"}
    assert {evaluation_text(None, LOWER), evaluation_text(unknown, LOWER), ratio_text(None, None)} == {"-"}
    assert error_text(unknown, LOWER) == ""


@pytest.mark.parametrize(("metric", "text"), [(LOWER, "+20.0% ±1.6%"), (HIGHER, "+25.0% ±2.5%")])
def test_an_error_is_told_as_its_gain_is(metric: Metric, text: str) -> None:
    found = Evaluation(verdict=Judgement.PASSED, gain=log(100 / 80), error=0.02)

    assert evaluation_text(found, metric) == text


def test_an_error_of_a_difference_is_in_the_unit() -> None:
    found = Evaluation(verdict=Judgement.PASSED, scale=Scale.DIFFERENCE, gain=3.0, error=0.25)

    assert evaluation_text(found, LOWER) == "+3 ms ±0.25 ms"
    assert evaluation_text(found.model_copy(update={"error": None}), LOWER) == "+3 ms"


def test_noise_is_told_with_what_it_was_measured_at() -> None:
    in_log = Noise(scale=Scale.LOG, sigma=0.0141, pairs=16, base=104.2)
    in_unit = Noise(scale=Scale.DIFFERENCE, sigma=1.5, pairs=8, base=0.0)

    assert noise_text(in_log, LOWER) == "1.41% at 104.2 ms, from 16 A/A pairs"
    assert noise_text(in_unit, LOWER) == "1.5 ms at 0 ms, from 8 A/A pairs"


@pytest.mark.parametrize(
    ("unit", "log_", "text"), [(0.74, 0.8, "0.74 (0.80)"), (1.0, None, "1.00"), (-0.002, -0.001, "0.00 (0.00)")]
)
def test_a_ratio_has_its_log_form_in_brackets(unit: float, log_: float | None, text: str) -> None:
    assert ratio_text(unit, log_) == text
