"""Measurements from plain numbers, for tests of what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.plan import Direction, Gates, Metric
from orch.workflows.model.round.trial import Measurement, Noise, Pair, Sample, Scale

Side = float | Sequence[float]

MS = Metric(name="time", direction=Direction.LOWER, unit="ms")
COUNT = Metric(name="instructions", direction=Direction.LOWER, unit="instructions")
RATE = Metric(name="speed", direction=Direction.HIGHER, unit="ops/s")

FOUR = Gates(pairs=4, repetitions=1)
EIGHT = Gates(pairs=8, repetitions=1)

OK = Exit(kind=ExitKind.OK)
FAILED = Exit(kind=ExitKind.FAILED, number=3)


def sample(value: float | None, exit_: Exit = OK, flaw: str = "") -> Sample:
    return Sample(value=value, exit=exit_, flaw=flaw)


def pair(index: int, a: Side, b: Side) -> Pair:
    return Pair(index=index, order="BA" if index % 2 else "AB", a=_runs(a), b=_runs(b))


def _runs(side: Side) -> tuple[Sample, ...]:
    return tuple(sample(value) for value in ([side] if isinstance(side, int | float) else side))


def measurement(pairs: Sequence[tuple[Side, Side] | Pair], **facts: Any) -> Measurement:
    """Pairs of (base, candidate), each one number or the numbers of its runs; odd ones ran the candidate first."""
    made = (each if isinstance(each, Pair) else pair(index, *each) for index, each in enumerate(pairs))
    return Measurement(base="a" * 40, candidate="b" * 40, device="cpu", pairs=tuple(made), **facts)


def noise(sigma: float, pairs: int = 8, scale: Scale = Scale.LOG, base: float = 100.0) -> Noise:
    return Noise(scale=scale, sigma=sigma, pairs=pairs, base=base)
