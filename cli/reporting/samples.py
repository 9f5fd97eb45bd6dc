"""The raw samples of a measurement as a small plot: every run a point, the base above, the candidate below."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from ...workflows.gains import value_text
from ...workflows.model.round.plan import Metric
from ...workflows.model.round.trial import Measurement, Sample
from .marks import label
from .markup import Html, el

WIDTH, HEIGHT, LEFT, RIGHT = 230.0, 46.0, 8.0, 222.0
ROWS = {"a": 9.0, "b": 23.0}
MOST = 256
"""Points of one side; of more every second, third, … one is drawn."""


def samples(found: Measurement | None, metric: Metric | None) -> Html:
    """The plot; nothing where no run gave a value."""
    if found is None:
        return Html("")
    sides = {
        "a": _values(run for pair in found.pairs for run in pair.a),
        "b": _values(run for pair in found.pairs for run in pair.b),
    }
    values = [value for side in sides.values() for value in side]
    if not values:
        return Html("")
    low, high = min(values), max(values)
    parts = [part for name, side in sides.items() for part in _side(name, side, low, high)]
    ends = (
        label(value_text(low, metric), LEFT, HEIGHT - 3, "muted"),
        label(value_text(high, metric), RIGHT, HEIGHT - 3, "muted", "end"),
    )
    counts = ", ".join(
        f"{len(side)} of {name}" for side, name in zip(sides.values(), ("base", "candidate"), strict=True)
    )
    box = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return el("svg", el("title", f"runs: {counts}"), *parts, *ends, viewBox=box, width=WIDTH, height=HEIGHT, role="img")


def _values(runs: Iterable[Sample]) -> list[float]:
    return [run.value for run in runs if run.value is not None]


def _side(name: str, values: list[float], low: float, high: float) -> Iterable[Html]:
    """The points of one side, and a stroke at their mean."""
    if not values:
        return
    span, y = (high - low) or 1.0, ROWS[name]
    for value in values[:: len(values) // MOST + 1]:
        yield el("circle", cx=LEFT + (value - low) / span * (RIGHT - LEFT), cy=y, r=2.6, class_=name)
    x = LEFT + (fmean(values) - low) / span * (RIGHT - LEFT)
    yield el("path", d=f"M{x:.1f} {y - 7}v14", class_="mean")
