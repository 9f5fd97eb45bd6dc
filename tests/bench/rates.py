"""What many simulated rounds come to: how often something holds, and how large something is, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

Z = 1.96


@dataclass(frozen=True)
class Rate:
    """How often something held."""

    held: int
    of: int

    @property
    def value(self) -> float:
        """The share."""
        return self.held / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The score interval: Wilson, Probable inference, the law of succession, and statistical inference (1927)."""
        centre = (self.value + Z * Z / (2 * self.of)) / (1 + Z * Z / self.of)
        half = Z * sqrt(self.value * (1 - self.value) / self.of + (Z / (2 * self.of)) ** 2) / (1 + Z * Z / self.of)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.value:.1f} % [{100 * low:.1f}-{100 * high:.1f}]"


@dataclass(frozen=True)
class Mean:
    """How large something is."""

    values: Sequence[float]

    @property
    def interval(self) -> tuple[float, float]:
        """The mean less and plus 1.96 standard errors."""
        count = len(self.values)
        middle = sum(self.values) / count
        error = sqrt(sum((value - middle) ** 2 for value in self.values) / (count - 1) / count)
        return middle - Z * error, middle + Z * error

    def __str__(self) -> str:
        low, high = self.interval
        return f"{50 * (low + high):+.2f} % [{100 * low:+.2f} to {100 * high:+.2f}]"
