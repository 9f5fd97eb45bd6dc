"""Student's t distribution, exact for whole degrees of freedom.

With angle = atan(t / sqrt(df)) the probability of |T| < t is a finite sum of powers of cos(angle): Abramowitz and
Stegun, Handbook of Mathematical Functions (1964), 26.7.3 for odd and 26.7.4 for even degrees of freedom. It grows
with the angle, so a quantile is found by bisection of the angle.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, erfc, pi, sin, sqrt, tan

MOST = 400
"""Degrees of freedom above which quantiles are those of 400: less than 1 % too large up to the level 0.9999."""

_HALVINGS = 60


def normal(deviations: float) -> float:
    """The probability that a normal value is below so many standard deviations above its mean."""
    return erfc(-deviations / sqrt(2)) / 2


def within(t: float, freedom: int) -> float:
    """The probability of |T| < t, for t >= 0 and at least one degree of freedom."""
    return _within(atan(t / sqrt(freedom)), freedom)


@lru_cache(maxsize=1024)
def quantile(level: float, freedom: int) -> float:
    """The t that a value of Student's distribution is below with probability `level`, from 0.5 up to below 1.

    Raises:
        ValueError: for another level, or less than one degree of freedom.
    """
    if not 0.5 <= level < 1 or freedom < 1:
        raise ValueError(f"no quantile at level {level} with {freedom} degrees of freedom")
    freedom = min(freedom, MOST)
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, freedom) < 2 * level - 1 else (low, angle)
    return sqrt(freedom) * tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    odd = freedom % 2
    term = total = (cos(angle) if freedom > 1 else 0.0) if odd else 1.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cos(angle) ** 2
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
