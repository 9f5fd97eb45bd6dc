"""The activities that a host's worker serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attempts import Attempts
from .exchange.claiming import Claims
from .home import Home
from .lanes.intake import Intake
from .measuring.measurements import Measurements
from .reviewing import Reviewing
from .rounds import Rounds
from .runs import Runs


def make_activities(home: Home, slots: int) -> list[Callable[..., Any]]:
    """Every effect of `workflows/effects.py`, bound to a state directory."""
    runs, attempts, rounds = Runs(home), Attempts(home, slots), Rounds(home)
    return [
        runs.prepare_run,
        runs.move_head,
        runs.promote,
        runs.close_run,
        Claims(home, slots).claim_host,
        attempts.open_workspace,
        attempts.run_agent,
        attempts.take_snapshot,
        attempts.yield_slot,
        attempts.close_attempt,
        Measurements(home).measure,
        Reviewing(home).review_head,
        rounds.prepare_round,
        rounds.record_round,
        Intake(home).take_in,
    ]
