"""Interaction: how much of a lane's gain alone is left on top of the lanes before it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from ..model.round.trial import Evaluation, Scale


@dataclass(frozen=True)
class Interaction:
    """A lane's gain in composition by its gain alone: about 1 orthogonal, well below 1 one bottleneck, above 1 more.

    Attributes:
        unit: of the differences in the metric's unit. Independent factors give less than 1 here: two cuts of 20 % each
            take 20 and then 16 of 100, so 0.8.
        log: of log ratios, where independent factors give 1; None where the metric is not positive.
    """

    unit: float | None
    log: float | None


def interaction(step: Evaluation, alone: Evaluation) -> Interaction:
    """The ratios of a composition step; each None where the gain alone is zero, or a gain is unknown.

    Args:
        step: the head with the lane, against the head before.
        alone: the lane's ticket, against the incumbent.
    """
    in_log = step.scale is Scale.LOG and alone.scale is Scale.LOG
    return Interaction(
        unit=_ratio(step.gain_unit, alone.gain_unit), log=_ratio(step.gain, alone.gain) if in_log else None
    )


def _ratio(gain: float | None, alone: float | None) -> float | None:
    if gain is None or not alone:
        return None
    ratio = gain / alone
    return ratio if isfinite(ratio) else None
