"""The bar: the least difference that a paired sample shows to be one, what it is made of, and the rollback line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log1p, sqrt

from ..model.round.plan import Direction, Gates
from ..model.round.trial import Noise
from .paired_sample import PairedSample

EXACT = 1e-9
"""Relative differences below this are rounding in double arithmetic (of a sum of a few million terms), never a gain."""

STEPS = 1.5
"""Steps of a clock above which a difference is one where no noise blurs them: a single step may be rounding."""


@dataclass(frozen=True)
class Bar:
    """What a gain must reach.

    Attributes:
        error: standard error of the gain.
        factor: how many of it are asked for.
        least: the least gain that is one; more than factor times error only by the floor for exact values and clocks.
    """

    error: float
    factor: float
    least: float


def bar(sample: PairedSample, noise: Noise | None, factor: Callable[[int], float]) -> Bar:
    """The bar of a sample.

    The standard error comes from the noise of A/A pairs or from the spread of these very pairs, whichever asks for
    more. The A/A pairs alone are not enough: they know nothing of a spike or of a noisy neighbour that came with
    this measurement, nor of a candidate that is less steady than the incumbent.

    Args:
        sample: the pairs.
        noise: of A/A pairs, in the sample's scale; None where there is none yet.
        factor: how many standard errors are asked for, by the degrees of freedom they are known with.
    """
    pairs = len(sample.differences)
    known = [(sample.spread, pairs - 1)]
    if noise:
        known.append((noise.sigma, noise.freedom))
    sigma, asked = max(((sigma, factor(freedom)) for sigma, freedom in known), key=lambda each: each[0] * each[1])
    error = sigma / sqrt(pairs)
    return Bar(error=error, factor=asked, least=max(asked * error, _floor(sample, max(sigma for sigma, _ in known))))


def rollback_line(sample: PairedSample, gates: Gates) -> float:
    """The smallest gain worth keeping, in the sample's scale: what must be won, as a fraction of the base's value."""
    if not sample.in_log:
        return gates.rollback * sample.level
    return -log1p(-gates.rollback) if sample.metric.direction is Direction.LOWER else log1p(gates.rollback)


def _floor(sample: PairedSample, sigma: float) -> float:
    """The least difference that can be one however small the noise is, in the sample's scale.

    A deterministic metric, such as a count of instructions, has no noise and needs none: its floor is that of
    arithmetic. A clock that is coarser than the noise shows none either. Then no number of pairs averages its rounding
    out: 0.05 s beside 0.04 s may be 0.0451 beside 0.0449. Once a value flickers, it is noise that is seen.
    """
    exact = EXACT * (1.0 if sample.in_log else sample.level)
    return max(exact, sample.in_scale(STEPS * sample.step)) if sigma <= exact else exact
