"""The rounds that a pilot is made of, as plans of their own: pure."""

from __future__ import annotations

from ..workflows.model.base import Sha
from ..workflows.model.round.pilot import Arm, PilotPlan
from ..workflows.model.round.plan import RoundPlan


def copy_of(pilot: PilotPlan, arm: Arm, pair: int) -> str:
    """The id of the campaign's copy that one run works at: no run sees what another one left."""
    return f"{pilot.round.campaign}-{pilot.id}-{arm.value.lower()}{pair + 1}"


def steps(pilot: PilotPlan, arm: Arm) -> int:
    """How many rounds one run of an arm has."""
    return 1 if arm is Arm.PARALLEL else len(pilot.round.lanes)


def round_of(pilot: PilotPlan, arm: Arm, pair: int, step: int, incumbent: Sha) -> RoundPlan:
    """The plan of one round: all lanes, or the one whose turn it is, from the incumbent that the run has by now.

    Args:
        pilot: the frozen pilot.
        arm: the run's arm.
        pair: its repetition, from 0.
        step: the round in the run, from 0.
        incumbent: what it starts from.

    Raises:
        ValueError: the id of the campaign's copy is too long.
    """
    whole = pilot.round
    changed: dict[str, object] = {"campaign": copy_of(pilot, arm, pair), "incumbent": incumbent}
    if arm is Arm.SERIAL:
        changed |= {"id": whole.lanes[step].id, "lanes": (whole.lanes[step],)}
    return RoundPlan.model_validate({**whole.model_dump(), **changed})
