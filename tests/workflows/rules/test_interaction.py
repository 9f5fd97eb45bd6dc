"""How much of a lane's gain is left in composition."""

from __future__ import annotations

from math import log

import pytest

from orch.workflows.model.round.trial import Evaluation, Judgement, Scale
from orch.workflows.rules.interaction import Interaction, interaction


def shown(before: float, after: float, scale: Scale = Scale.LOG) -> Evaluation:
    """Lower is better."""
    gain = log(before / after) if scale is Scale.LOG else before - after
    return Evaluation(verdict=Judgement.PASSED, scale=scale, gain=gain, gain_unit=before - after)


@pytest.mark.parametrize(
    ("step", "alone", "unit", "in_log"),
    [
        (shown(80, 64), shown(100, 80), 0.8, 1.0),  # two independent cuts of a fifth
        (shown(80, 60), shown(100, 80), 1.0, 1.2892),  # twenty off each time
        (shown(80, 78), shown(100, 80), 0.1, 0.1135),  # the same bottleneck
        (shown(80, 80), shown(100, 80), 0.0, 0.0),
        (shown(80, 88), shown(100, 80), -0.4, -0.4271),
    ],
)
def test_the_ratio_is_the_gain_in_composition_by_the_gain_alone(
    step: Evaluation, alone: Evaluation, unit: float, in_log: float
) -> None:
    got = interaction(step, alone)
    assert got.unit == pytest.approx(unit)
    assert got.log == pytest.approx(in_log, abs=5e-5)


def test_differences_have_no_log_form() -> None:
    step, alone = shown(-1, -3, Scale.DIFFERENCE), shown(3, -1, Scale.DIFFERENCE)
    assert interaction(step, alone) == Interaction(unit=0.5, log=None)
    assert interaction(shown(80, 64), shown(100, 80, Scale.DIFFERENCE)).log is None


NOTHING = Evaluation(verdict=Judgement.UNEVALUABLE)


@pytest.mark.parametrize(
    ("step", "alone"),
    [
        (shown(100, 90), shown(100, 100)),
        (shown(100, 90), NOTHING),
        (NOTHING, shown(100, 90)),
        (NOTHING, NOTHING),
        (shown(1e308, 1), Evaluation(verdict=Judgement.PASSED, gain=1e-320, gain_unit=1e-320)),
    ],
)
def test_without_a_gain_alone_there_is_no_ratio(step: Evaluation, alone: Evaluation) -> None:
    assert interaction(step, alone) == Interaction(unit=None, log=None)
