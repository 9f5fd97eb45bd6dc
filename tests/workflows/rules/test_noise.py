"""The noise of A/A pairs: what a sound device shows, what pauses a queue, and how measurements are pooled."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import GuardResult, Measurement, Noise, Pair, Scale
from orch.workflows.rules.noise import guard, pool

from ..measured import COUNT, EIGHT, FOUR, MS, measurement, noise, pair, sample

REFUSED = "the validator refused the incumbent's own result: exit 4"


def logs(*differences: float, level: float = 100.0) -> Measurement:
    """Pairs whose log ratios are these."""
    return measurement([(level * exp(d / 2), level * exp(-d / 2)) for d in differences])


STEADY = logs(0.03, -0.01, -0.03, 0.01)
"""Without a difference; the deviation is sqrt(0.002 / 3) = 0.0258."""


def guarded(facts: Measurement, pooled: Noise | None = None) -> GuardResult:
    return guard(facts, MS, FOUR, pooled)


def test_a_sound_device_passes_with_the_noise_of_its_pairs() -> None:
    got = guarded(STEADY)
    assert got.passed
    assert got.noise is not None
    assert (got.noise.scale, got.noise.pairs, got.noise.measurements) == (Scale.LOG, 4, 1)
    assert got.noise.sigma == pytest.approx(0.0258199, abs=1e-7)
    assert got.noise.base == pytest.approx(100, abs=0.02)
    assert got.why == "noise of a pair 2.55 %, difference 0.00 %, level 100 ms"


def test_noise_above_the_gate_fails_and_is_told() -> None:
    got = guarded(logs(0.15, -0.05, -0.15, 0.05))  # sqrt(0.05 / 3) = 0.129
    assert (got.passed, got.why) == (False, "the noise of a pair is 12.11 %, at most 9.52 % is allowed")
    assert got.noise is not None


def test_in_the_unit_the_gate_is_a_fraction_of_the_level() -> None:
    known = noise(5.0, 4, Scale.DIFFERENCE)
    wide = measurement([(106, 94), (98, 102), (94, 106), (102, 98)])  # 12 -4 -12 4: sqrt(320 / 3) = 10.3 of 100
    assert guarded(wide, known).why == "the noise of a pair is 10.33 ms, at most 10 ms is allowed"
    assert guarded(measurement([(104, 96), (98, 102), (96, 104), (102, 98)]), known).passed
    assert guarded(measurement([(0, 0)] * 4), known).passed


@pytest.mark.parametrize(
    ("differences", "passed"),
    [
        # The mean is 0.03 and the deviation sqrt(0.0004 / 3), so 5.2 errors: fewer than the 5.84 of 1 % with 3 degrees.
        ((0.04, 0.04, 0.02, 0.02), True),
        # The same mean with half of it: 10.4 errors.
        ((0.035, 0.035, 0.025, 0.025), False),
        ((-0.035, -0.035, -0.025, -0.025), False),
        ((0.03, 0.03, 0.03, 0.03), False),
    ],
)
def test_a_difference_where_there_is_none_fails(differences: tuple[float, ...], passed: bool) -> None:
    got = guarded(logs(*differences))
    assert got.passed is passed
    assert passed or "the incumbent differs from itself by" in got.why


def test_a_difference_that_the_noise_of_earlier_pairs_explains_fails_nothing() -> None:
    facts = logs(0.035, 0.035, 0.025, 0.025)
    assert not guarded(facts, noise(0.01)).passed  # an error of 0.005, and 3.50 with 7 degrees: 0.0175
    assert guarded(facts, noise(0.02)).passed  # 0.035
    assert "noise makes less than 1.73 %" in guarded(facts, noise(0.01)).why


def test_a_level_that_drifts_through_the_pairs_fails_in_either_direction() -> None:
    rising = [(100, 100)] * 2 + [(111, 111)] * 2
    assert guarded(measurement(rising)).why == "the incumbent drifted from 100 to 111 ms while it was measured"
    assert not guarded(measurement([(100, 100)] * 2 + [(89, 89)] * 2)).passed
    assert guarded(measurement([(100, 100)] * 2 + [(109, 109)] * 2)).passed


def test_a_level_that_moved_since_earlier_pairs_is_told_and_fails_nothing() -> None:
    got = guarded(measurement([(150, 150)] * 4), noise(0.02))
    assert (got.passed, got.why) == (True, "noise of a pair 0.00 %, difference 0.00 %, level 150 ms, before 100 ms")


def test_all_faults_are_told() -> None:
    first, second = guarded(measurement([(100, 50), (100, 50), (200, 50), (200, 50)])).why.split("; ")
    assert first.startswith("the noise of a pair is")
    assert second == "the incumbent drifted from 75 to 125 ms while it was measured"


def test_a_deterministic_metric_has_no_noise_and_must_not_differ_at_all() -> None:
    same = guard(measurement([(1000, 1000)] * 4), COUNT, FOUR, None)
    assert (same.passed, same.noise) == (True, Noise(scale=Scale.LOG, sigma=0, pairs=4, base=1000))
    assert not guard(measurement([(1000, 999)] * 4), COUNT, FOUR, None).passed


def test_a_difference_that_is_small_beside_the_rollback_line_is_harmless() -> None:
    counts = measurement([(1_000_900, 1_000_000)] * 4)  # the very same count of each side, 0.09 % apart
    for rollback, passed in ((0.0, False), (0.005, False), (0.01, True)):
        gates = FOUR.model_copy(update={"rollback": rollback})
        assert guard(counts, COUNT, gates, None).passed is passed


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"failed": Cause.BUILD_FAILED, "detail": "exit 2"}, "nothing was measured: build_failed: exit 2"),
        ({"busy": "load 3.1"}, "nothing was measured: the device is busy (load 3.1)"),
        ({"invalid": Exit(kind=ExitKind.FAILED, number=4)}, REFUSED),
        ({"invalid": Exit(kind=ExitKind.FAILED, number=4), "side": "base"}, REFUSED),
    ],
)
def test_an_incumbent_that_does_not_run_or_is_not_right_fails_without_noise(facts: dict[str, Any], why: str) -> None:
    assert guarded(STEADY.model_copy(update=facts)) == GuardResult(passed=False, why=why)


def test_missing_pairs_failed_runs_and_changes_of_sign_fail_without_noise() -> None:
    crashed = Pair(index=0, order="AB", a=(sample(1.0),), b=(sample(None, flaw="no result file"),))
    for facts, why in (
        (measurement([(1, 1)] * 2), "2 of 4 pairs"),
        (measurement([crashed, *(pair(i, 1, 1) for i in (1, 2, 3))]), "no result file"),
        (measurement([(1, 1)] * 3 + [(1, -1)]), "changes its sign"),
    ):
        got = guarded(facts)
        assert (got.passed, got.noise) == (False, None)
        assert why in got.why


def test_the_scale_is_that_of_earlier_pairs() -> None:
    zero = measurement([(0, 1), (1, 0), (1, 1), (0, 0)])
    assert "noise was measured in log ratios" in guarded(zero, noise(0.02)).why
    kept = guarded(measurement([(100, 100)] * 4), noise(2.0, 4, Scale.DIFFERENCE)).noise
    assert kept is not None
    assert kept.scale is Scale.DIFFERENCE


def test_variances_are_pooled_by_degrees_of_freedom() -> None:
    one = Noise(scale=Scale.LOG, sigma=0.01, pairs=4, base=100)
    other = Noise(scale=Scale.LOG, sigma=0.03, pairs=8, base=106)
    # (3 * 0.0001 + 7 * 0.0009) / 10 = 0.00066; (4 * 100 + 8 * 106) / 12 = 104
    both = pool([one, other])
    assert (both.pairs, both.measurements, both.freedom) == (12, 2, 10)
    assert both.sigma == pytest.approx(sqrt(0.00066))
    assert both.base == pytest.approx(104)
    assert pool([one]) == one


def test_pooling_what_was_pooled_is_pooling_all() -> None:
    noises = [Noise(scale=Scale.LOG, sigma=s, pairs=p, base=100) for s, p in ((0.01, 4), (0.02, 6), (0.0, 8))]
    assert pool([pool(noises[:2]), noises[2]]).sigma == pytest.approx(pool(noises).sigma)
    assert pool([pool(noises[:2]), noises[2]]).freedom == pool(noises).freedom == 15


def test_no_noise_pooled_is_no_noise_and_tiny_noise_does_not_vanish() -> None:
    assert pool([noise(0.0), noise(0.0)]).sigma == 0
    assert pool([noise(1e-200), noise(1e-200)]).sigma == pytest.approx(1e-200)


def test_nothing_and_two_scales_cannot_be_pooled() -> None:
    for noises in ([], [noise(0.1), noise(0.1, scale=Scale.DIFFERENCE)]):
        with pytest.raises(ValueError, match="one scale"):
            pool(noises)


differences = st.lists(st.floats(min_value=-0.3, max_value=0.3), min_size=4, max_size=4)


@given(differences, st.floats(min_value=1e-3, max_value=1e3))
def test_noise_in_logs_does_not_depend_on_the_unit(d: list[float], factor: float) -> None:
    one, other = (guard(logs(*d, level=level), COUNT, FOUR, None) for level in (100, 100 * factor))
    assert one.noise is not None
    assert other.noise is not None
    assert one.noise.sigma == pytest.approx(other.noise.sigma, abs=1e-9)


@given(differences)
def test_naming_the_sides_the_other_way_round_changes_nothing(d: list[float]) -> None:
    one, other = guarded(logs(*d)), guarded(logs(*(-each for each in d)))
    assert one.passed is other.passed
    assert one.noise is not None
    assert other.noise is not None
    assert one.noise.sigma == pytest.approx(other.noise.sigma)


def test_a_gate_of_eight_pairs_wants_eight() -> None:
    assert guard(STEADY, MS, EIGHT, None).why == "4 of 8 pairs are complete"
