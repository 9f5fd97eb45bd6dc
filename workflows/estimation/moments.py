"""Mean, median and standard deviation of a few floats.

The standard library's `statistics` imports `random`, which no workflow may. All three give the same for any order
of the values, a constant has exactly its own value as mean and exactly 0 as deviation, and what overflows is not
finite instead of an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isfinite, nan, sqrt


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; nan when it is no double.

    Raises:
        ValueError: without values.
    """
    least = min(values)
    shares = [(value - least) / len(values) for value in values]
    return least + fsum(shares) if all(map(isfinite, shares)) else nan


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle.

    Raises:
        ValueError: without values.
    """
    if not values:
        raise ValueError("a median needs a value")
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else mean(ordered[half - 1 : half + 1])


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation, with n - 1; nan when it is no double.

    Raises:
        ValueError: with fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("a standard deviation needs two values")
    middle = mean(values)
    residuals = [value - middle for value in values]
    largest = max(map(abs, residuals))
    if not largest or not isfinite(largest):
        return largest if not largest else nan
    return largest * sqrt(fsum((each / largest) * (each / largest) for each in residuals) / (len(values) - 1))
