"""A benchmark that is not run: samples from a seeded noise model, and what they show by the plainest formula."""

from __future__ import annotations

import math
import random
from statistics import fmean, median

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.trial import Evaluation, Judgement, Measurement, Pair, Sample

OK = Exit(kind=ExitKind.OK)
BASE_MS = 100.0
SPREAD = 0.01
"""Standard deviation of a benchmark run, as a share of its value."""


class Bench:
    """Gives pairs of one run for each side."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.sigma = SPREAD * math.sqrt(2)

    def pairs(self, count: int, a: float, b: float) -> tuple[Pair, ...]:
        """AB/BA pairs; a and b are what the sides make of the incumbent's value."""
        return tuple(
            Pair(index=n, order="BA" if n % 2 else "AB", a=(self._sample(a),), b=(self._sample(b),))
            for n in range(count)
        )

    def _sample(self, factor: float) -> Sample:
        value = round(BASE_MS * factor * (1 + self._random.gauss(0, SPREAD)), 3)
        return Sample(value=value, exit=OK, wall_s=round(value / 50, 3))

    def evaluate(self, found: Measurement) -> Evaluation:
        """Mean log ratio, and its error from the noise of A/A pairs."""
        sides = [(median(_values(pair.a)), median(_values(pair.b))) for pair in found.pairs]
        logs = [math.log(a / b) for a, b in sides]
        gain, error = fmean(logs), self.sigma / math.sqrt(len(logs))
        verdict = Judgement.PASSED if gain >= 2 * error and gain >= 0.01 else Judgement.NOT_MEASURED
        return Evaluation(
            verdict=Judgement.REGRESSION if gain <= -2 * error else verdict,
            gain=gain,
            gain_unit=fmean(a - b for a, b in sides),
            error=error,
            needed=2 * error,
            order_effect=abs(fmean(logs[::2]) - fmean(logs[1::2])),
            base=fmean(a for a, _ in sides),
            candidate=fmean(b for _, b in sides),
            pairs=len(logs),
            why=f"gain {gain:.4f}, two sigma {2 * error:.4f}",
        )


def _values(samples: tuple[Sample, ...]) -> list[float]:
    return [sample.value for sample in samples if sample.value is not None]
