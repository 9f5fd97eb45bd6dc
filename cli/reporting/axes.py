"""An axis with round ticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

from .marks import label
from .markup import Html, el, join

STEPS = (1.0, 2.0, 5.0, 10.0)
TIMES = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0)


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `left` to `right`, with a tick every `step`."""

    low: float
    high: float
    left: float
    right: float
    step: float

    @classmethod
    def over(cls, low: float, high: float, left: float, right: float, ticks: int = 8) -> Axis:
        """An axis that holds both values and begins and ends at a tick."""
        span = (high - low) or abs(high) or 1.0
        rough = span / ticks
        base = 10.0 ** floor(log10(rough))
        step = next(base * each for each in STEPS if base * each >= rough * (1 - 1e-9))
        return cls(floor(low / step) * step, ceil(high / step) * step or step, left, right, step)

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.left + (value - self.low) / (self.high - self.low) * (self.right - self.left)

    @classmethod
    def of_time(cls, seconds: float, left: float, right: float, ticks: int = 9) -> Axis:
        """An axis from zero over so many seconds; its ticks are times that people count in."""
        step = next((each for each in TIMES if each * ticks >= seconds), TIMES[-1])
        while step * ticks < seconds:
            step *= 2
        return cls(0.0, seconds or 1.0, left, right, step)

    @property
    def ticks(self) -> list[float]:
        """The values that are marked."""
        count = floor((self.high - self.low) / self.step * (1 + 1e-9))
        return [self.low + self.step * n for n in range(count + 1)]

    def grid(self, top: float, bottom: float, text: Callable[[float], str]) -> Html:
        """A line down from each tick, the one of zero stronger, and the values below."""
        return join(
            join(
                el("path", d=f"M{self.at(value):.1f} {top}V{bottom}", class_="axis" if self._zero(value) else "grid"),
                label(text(0.0 if self._zero(value) else value), self.at(value), bottom + 18, "muted", "middle"),
            )
            for value in self.ticks
        )

    def _zero(self, value: float) -> bool:
        return abs(value) < self.step / 1e6
