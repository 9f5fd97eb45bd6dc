"""The activities that a host's worker serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .admission import Admission
from .attempts import Attempts
from .composing import Composing
from .exchange.claiming import Claims
from .home import Home
from .lanes.intake import Intake
from .lanes.lane import Lanes
from .measuring.measurements import Measurements
from .reviewing import Reviewing
from .rounds import Rounds
from .runs import Runs
from .trials.building import Building
from .trials.pairs import Measuring
from .trials.validating import Validating


def make_activities(home: Home, slots: int) -> list[Callable[..., Any]]:
    """Every effect of `workflows/effects.py`, bound to a state directory."""
    runs, rounds, admission = Runs(home), Rounds(home), Admission(home, slots)
    attempts = Attempts(home, admission)
    return [
        runs.prepare_run,
        runs.move_head,
        runs.keep_events,
        runs.promote,
        runs.close_run,
        Claims(home, slots).claim_host,
        attempts.open_workspace,
        attempts.run_agent,
        attempts.take_snapshot,
        attempts.yield_slot,
        attempts.close_attempt,
        Lanes(home, admission).open_lane,
        Measurements(home).measure,
        Reviewing(home).review_head,
        rounds.prepare_round,
        rounds.record_round,
        Intake(home).take_in,
        Composing(home).compose_step,
        Building(home).build_trial,
        Measuring(home).measure_pairs,
        Validating(home).validate_outputs,
    ]
