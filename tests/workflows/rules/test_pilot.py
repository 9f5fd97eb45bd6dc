"""The pilot's rule, by tables: who was first, by how much, with which gain, and what censoring leaves open."""

from __future__ import annotations

import math
import random

import pytest

from orch.workflows.model.round.pilot import LABEL, Arm, Decision, PilotRule, PilotRun, Spread, Verdict
from orch.workflows.model.round.plan import Direction
from orch.workflows.model.round.trial import Scale
from orch.workflows.rules.pilot import decide, needed, order, spread

RULE = PilotRule(target=0.5, fraction=0.8, threshold=0.8)
NEVER = 900.0
"""When the budget of a run that never reaches the target is used up."""


def runs(
    times: list[tuple[float | None, float | None]], gains: tuple[float, float] = (0.5, 0.5), error: float = 0.01
) -> list[PilotRun]:
    """The runs of pairs whose P and S reached the target at these times."""
    return [
        PilotRun(
            arm=arm,
            pair=pair,
            rounds=("round-c-r1",),
            reached_s=at,
            ended_s=NEVER if at is None else at + 1,
            gain=gain,
            error=error,
        )
        for pair, both in enumerate(times)
        for arm, at, gain in zip(Arm, both, gains, strict=True)
    ]


@pytest.mark.parametrize(
    ("times", "verdict", "why"),
    [
        ([(100, 300), (110, 250), (90, 310)], Verdict.FASTER, "P was first in all 3 pairs"),
        ([(300, 100), (250, 110), (310, 90)], Verdict.SLOWER, "S was first in all 3 pairs"),
        ([(100, 300), (260, 250), (90, 310)], Verdict.OPEN, "before S in pair 2"),
        ([(100, 300), (250, 250), (90, 310)], Verdict.OPEN, "before S in pair 2"),
        ([(100, 120), (90, 110), (100, 121)], Verdict.OPEN, "ratio P/S 0.83 is not below 0.8"),
        ([(80, 100), (80, 100), (80, 100)], Verdict.OPEN, "ratio P/S 0.80 is not below 0.8"),
        ([(79, 100), (79, 100), (99, 100)], Verdict.FASTER, "P was first"),
        ([(100, 300), (110, 250)], Verdict.OPEN, "2 complete pairs"),
        ([], Verdict.OPEN, "0 complete pairs"),
        ([(100, None), (110, None), (90, None)], Verdict.FASTER, "P was first"),
        ([(None, 100), (None, 110), (None, 90)], Verdict.SLOWER, "S was first"),
        ([(None, None)] * 3, Verdict.OPEN, "in pair 1, 2, 3"),
        ([(100, 300), (None, 250), (90, 310)], Verdict.OPEN, "in pair 2"),
        ([(NEVER + 1, None), (100, 300), (90, 310)], Verdict.OPEN, "in pair 1"),
    ],
)
def test_verdict_of_times(times: list[tuple[float | None, float | None]], verdict: Verdict, why: str) -> None:
    found = decide(runs(times), RULE)

    assert found.verdict is verdict
    assert why in found.why
    assert found.label == LABEL


@pytest.mark.parametrize(
    ("gains", "error", "verdict"),
    [
        ((0.5, 0.5), 0.0, Verdict.FASTER),
        ((0.6, 0.5), 0.0, Verdict.FASTER),
        ((0.49, 0.5), 0.0, Verdict.OPEN),
        ((0.49, 0.5), 0.01, Verdict.FASTER),  # less than two standard errors of 0.0141
        ((0.46, 0.5), 0.01, Verdict.OPEN),
    ],
)
def test_gain_that_is_lower_by_more_than_was_measured_wins_nothing(
    gains: tuple[float, float], error: float, verdict: Verdict
) -> None:
    assert decide(runs([(100, 300)] * 3, gains, error), RULE).verdict is verdict


def test_slower_needs_a_gain_that_is_not_lower_either() -> None:
    assert decide(runs([(300, 100)] * 3, (0.5, 0.4), 0.0), RULE).verdict is Verdict.OPEN


def test_medians_and_ranges_tell_of_every_run_and_censored_ones_with_their_bound() -> None:
    found = decide(runs([(100, 200), (120, None), (90, 300), (110, 220)]), RULE)

    assert found.times == {
        Arm.PARALLEL: Spread(median=105, low=90, high=120),
        Arm.SERIAL: Spread(median=260, low=200, high=NEVER),
    }
    assert found.censored == {Arm.PARALLEL: 0, Arm.SERIAL: 1}
    assert found.ratio == Spread(median=0.4, low=120 / NEVER, high=0.5)


def test_pair_that_is_censored_twice_has_no_ratio() -> None:
    assert decide(runs([(100, 200), (None, None), (100, 200)]), RULE).ratio is None


def test_half_a_pair_is_none() -> None:
    assert "2 complete pairs" in decide(runs([(100.0, 300.0)] * 3)[:-1], RULE).why


def test_order_of_the_runs_decides_nothing() -> None:
    given = runs([(100, 300), (110, 250), (90, 310)])
    shuffled = random.Random(5).sample(given, len(given))

    assert shuffled != given
    assert decide(shuffled, RULE) == decide(given, RULE)


def test_runs_are_made_in_turns() -> None:
    assert "".join(arm.value for arm, _ in order(4)) == "PSSPPSSP"
    assert [pair for _, pair in order(3)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("direction", "scale", "base", "gain"),
    [
        (Direction.LOWER, Scale.LOG, 100.0, -math.log(0.6)),  # 0.8 · 50 percent less
        (Direction.HIGHER, Scale.LOG, 100.0, math.log(1.4)),
        (Direction.LOWER, Scale.DIFFERENCE, -20.0, 8.0),
        (Direction.HIGHER, Scale.DIFFERENCE, 20.0, 8.0),
    ],
)
def test_target_in_the_scale_of_the_ledger(direction: Direction, scale: Scale, base: float, gain: float) -> None:
    assert needed(RULE, direction, scale, base) == pytest.approx(gain)


def test_target_that_leaves_less_than_nothing_is_never_reached() -> None:
    assert needed(PilotRule(target=2, fraction=0.5), Direction.LOWER, Scale.LOG, 10) == math.inf


@pytest.mark.parametrize(("values", "median"), [([3.0], 3), ([4.0, 1.0], 2.5), ([9.0, 1.0, 2.0], 2)])
def test_median(values: list[float], median: float) -> None:
    assert spread(values) == Spread(median=median, low=min(values), high=max(values))


def test_decision_survives_json() -> None:
    found = decide(runs([(100, 300), (110, None), (90, 310)]), RULE)

    assert Decision.model_validate_json(found.model_dump_json()) == found
