"""Student's t: against printed tables and against distributions that have a closed form."""

from __future__ import annotations

from math import atan, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.estimation.student import MOST, normal, quantile, within

FREEDOM = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30)

NIST = {
    0.90: (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.372, 1.341, 1.325, 1.310),
    0.95: (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.812, 1.753, 1.725, 1.697),
    0.975: (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.228, 2.131, 2.086, 2.042),
    0.99: (31.821, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.764, 2.602, 2.528, 2.457),
}
"""One-sided levels, from the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""

GUM = {
    0.9544997: (13.97, 4.53, 3.31, 2.87, 2.65, 2.52, 2.43, 2.37, 2.28, 2.18, 2.13, 2.09),
    0.99: (63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.17, 2.95, 2.85, 2.75),
    0.9973002: (235.80, 19.21, 9.22, 6.62, 5.51, 4.90, 4.53, 4.28, 3.96, 3.59, 3.42, 3.27),
}
"""Two-sided fractions, from JCGM 100:2008 (the Guide to the expression of uncertainty in measurement), table G.2; two
of its columns are those of two and of three sigma, printed as 95.45 % and 99.73 %."""


@pytest.mark.parametrize(
    ("level", "freedom", "t"),
    [(level, f, t) for level, row in NIST.items() for f, t in zip(FREEDOM, row, strict=True)],
)
def test_one_sided_quantile_is_that_of_the_table(level: float, freedom: int, t: float) -> None:
    assert quantile(level, freedom) == pytest.approx(t, abs=0.0006)


@pytest.mark.parametrize(
    ("fraction", "freedom", "t"),
    [(fraction, f, t) for fraction, row in GUM.items() for f, t in zip(FREEDOM, row, strict=True)],
)
def test_two_sided_quantile_is_that_of_the_table(fraction: float, freedom: int, t: float) -> None:
    assert quantile((1 + fraction) / 2, freedom) == pytest.approx(t, abs=0.006)


@pytest.mark.parametrize(("deviations", "level"), [(-2, 0.02275), (0, 0.5), (1, 0.84134), (2, 0.97725), (3, 0.99865)])
def test_normal_is_that_of_the_table(deviations: float, level: float) -> None:
    assert normal(deviations) == pytest.approx(level, abs=0.000006)


@given(st.floats(min_value=0, max_value=1e6))
def test_one_and_two_degrees_have_a_closed_form(t: float) -> None:
    assert within(t, 1) == pytest.approx(2 / pi * atan(t), abs=1e-12)
    assert within(t, 2) == pytest.approx(t / sqrt(2 + t * t), abs=1e-12)


@given(st.floats(min_value=0.5, max_value=0.9999), st.integers(min_value=1, max_value=MOST))
def test_quantile_is_the_inverse(level: float, freedom: int) -> None:
    assert (1 + within(quantile(level, freedom), freedom)) / 2 == pytest.approx(level, abs=1e-9)


def test_many_degrees_are_nearly_normal_and_never_ask_for_less() -> None:
    assert quantile(0.5, 5) == pytest.approx(0, abs=1e-15)
    assert 1.96 < quantile(0.975, 10_000) == quantile(0.975, MOST) < 1.967
    assert 2 < quantile(normal(2), 10**9) < 2.007


@pytest.mark.parametrize(("level", "freedom"), [(1.0, 5), (0.4, 5), (0.9, 0), (float("nan"), 5)])
def test_a_quantile_that_does_not_exist_is_an_error(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        quantile(level, freedom)
