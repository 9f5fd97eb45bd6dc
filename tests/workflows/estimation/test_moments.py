"""Mean, median, deviation: by hand, by properties, and where doubles end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.estimation.moments import deviation, mean, median

Moment = Callable[[Sequence[float]], float]

numbers = st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=2, max_size=20)


def test_of_a_few_numbers_they_are_as_by_hand() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]  # squared residuals 9 1 1 1 0 0 4 16
    assert (mean(values), median(values)) == (5.0, 4.5)
    assert deviation(values) == pytest.approx(sqrt(32 / 7), rel=1e-15)
    assert (median([3.0, 1.0, 2.0]), mean([-1.0, 1.0]), median([7.0])) == (2.0, 0.0, 7.0)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(min_value=2, max_value=9))
def test_a_constant_has_itself_as_mean_and_no_deviation(value: float, count: int) -> None:
    values = [value] * count
    assert (mean(values), median(values), deviation(values)) == (value, value, 0.0)


@given(numbers.flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_the_order_of_values_is_irrelevant(both: tuple[list[float], list[float]]) -> None:
    values, shuffled = both
    for moment in (mean, median, deviation):
        assert moment(shuffled) == moment(values)


@given(numbers, st.floats(min_value=-1e6, max_value=1e6))
def test_moving_all_values_moves_the_mean_and_no_deviation(values: list[float], by: float) -> None:
    moved = [value + by for value in values]
    assert mean(moved) == pytest.approx(mean(values) + by, abs=1e-5)
    assert deviation(moved) == pytest.approx(deviation(values), abs=1e-5, rel=1e-9)


def test_small_and_large_doubles_do_not_overflow_or_vanish() -> None:
    assert mean([1e308, 1.2e308, 1.4e308]) == pytest.approx(1.2e308)
    assert deviation([1e200, 3e200]) == pytest.approx(sqrt(2) * 1e200)
    assert deviation([1e-200, 3e-200]) == pytest.approx(sqrt(2) * 1e-200)


@pytest.mark.parametrize("moment", [mean, deviation])
@pytest.mark.parametrize("values", [[-1.7e308, 1.7e308], [1.0, float("inf")], [float("nan"), 1.0]])
def test_what_is_no_double_is_not_finite(moment: Moment, values: list[float]) -> None:
    assert not isfinite(moment(values))


@pytest.mark.parametrize(("moment", "values"), [(mean, []), (median, []), (deviation, [1.0])])
def test_too_few_values_are_an_error(moment: Moment, values: list[float]) -> None:
    with pytest.raises(ValueError):
        moment(values)
