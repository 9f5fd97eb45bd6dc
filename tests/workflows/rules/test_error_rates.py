"""How often a whole round is fooled, and how often it finds what is there: seeded, on a simulated shared machine.

Runs vary by 2 % (lognormal); on the shared machine, besides, 2 % of them have a heavy-tailed spike, the level drifts
(AR(1), 3 %) and a neighbour of 10 % comes and goes. `python -m tests.bench.error_rates` has more rounds and more ways.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from orch.workflows.model.round.plan import Gates

from ...bench.rates import Mean, Rate
from ...bench.simulated_rounds import (
    MANY_LIKE,
    NULLS,
    ONE_GAIN,
    QUIET,
    SHARED,
    UNSTEADY,
    Round,
    Weather,
    play,
)

ONCE = Gates(repetitions=1)
WEATHERS = pytest.mark.parametrize(
    ("weather", "gates"),
    [
        pytest.param(QUIET, ONCE, id="steady-machine", marks=pytest.mark.soak),
        pytest.param(SHARED, Gates(), id="shared-machine"),
    ],
)
"""Each with 8 pairs: one run a side is enough for runs that only vary by 2 %; a shared machine wants three."""


def test_the_rates_are_those_of_the_default_pairs() -> None:
    assert (Gates().pairs, Gates().repetitions) == (8, 3)


@WEATHERS
def test_a_null_change_is_accepted_in_at_most_a_fortieth_of_rounds(weather: Weather, gates: Gates) -> None:
    accepted = [bool(play(seed, weather, gates, NULLS).accepted) for seed in range(300)]
    assert Rate(sum(accepted), len(accepted)).interval[1] <= 0.025


@WEATHERS
def test_a_null_change_that_is_only_less_steady_is_no_better(weather: Weather, gates: Gates) -> None:
    accepted = [bool(play(seed, weather, gates, UNSTEADY).accepted) for seed in range(200)]
    assert Rate(sum(accepted), len(accepted)).value <= 0.025


@WEATHERS
def test_a_true_gain_of_5_percent_is_found_in_nineteen_of_twenty_rounds(weather: Weather, gates: Gates) -> None:
    found = ["b" in play(seed, weather, gates, ONE_GAIN).accepted for seed in range(200)]
    assert Rate(sum(found), len(found)).value >= 0.95


@lru_cache
def rounds_of_equals() -> list[Round]:
    return [play(seed, SHARED, Gates(), MANY_LIKE) for seed in range(150)]


def test_the_best_of_many_tickets_looks_better_than_it_is() -> None:
    excess = Mean([pick.excess for each in rounds_of_equals() for pick in each.picks])
    assert excess.interval[0] > 0.005


def test_all_tickets_together_and_the_rerun_of_the_composed_head_do_not() -> None:
    for excess in (
        Mean([ticket.excess for each in rounds_of_equals() for ticket in each.tickets]),
        Mean([each.reruns[0].excess for each in rounds_of_equals() if each.reruns]),
    ):
        low, high = excess.interval
        assert low < 0 < high
        assert high - low < 0.004
