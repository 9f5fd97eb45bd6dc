"""A pilot at work: its runs one after the other, each written to disk when it is finished, so that it can go on.

A pilot that was interrupted is started again with the same file: finished runs are read, a round that is under way
is followed, and only what is missing is begun.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from ..activities.artifacts import write_whole
from ..workflows.errors import RefusedError
from ..workflows.model.base import Sha
from ..workflows.model.event import Event, RunEnded
from ..workflows.model.round.event import RoundDecided, RoundStarted
from ..workflows.model.round.pilot import Arm, PilotPlan, PilotRun
from ..workflows.model.round.plan import RoundPlan
from ..workflows.rules.pilot import order
from .pilot_facts import facts
from .pilot_plans import round_of, steps

Ledger = list[Event]
Play = Callable[[RoundPlan], Awaitable[Ledger]]
"""Runs a round to its end, or follows the one that runs, and returns its ledger."""


async def run_pilot(pilot: PilotPlan, folder: Path, play: Play) -> AsyncIterator[PilotRun]:
    """Make every run that is missing, and give each when it is there, in the order of the pilot.

    Raises:
        RefusedError: another pilot has this id, or a round ended without a decision.
    """
    _claim(pilot, folder)
    for arm, pair in order(pilot.repetitions):
        path = folder / f"{arm.value.lower()}{pair + 1}.json"
        if not path.exists():
            ledgers = [ledger async for ledger in _rounds(pilot, arm, pair, play)]
            found = facts(arm, pair, ledgers, pilot.rule)
            write_whole(path, found.model_dump_json(indent=1))
        yield PilotRun.model_validate_json(path.read_bytes())


async def _rounds(pilot: PilotPlan, arm: Arm, pair: int, play: Play) -> AsyncIterator[Ledger]:
    incumbent = pilot.round.incumbent
    for step in range(steps(pilot, arm)):
        plan = round_of(pilot, arm, pair, step, incumbent)
        ledger = await play(plan)
        incumbent = _after(plan, ledger)
        yield ledger


def _after(plan: RoundPlan, ledger: Sequence[Event]) -> Sha:
    """The incumbent after a round: the new one, or the old one when that stayed."""
    began = next((event for event in ledger if isinstance(event, RoundStarted)), None)
    run = began.run if began else f"round {plan.id} of campaign {plan.campaign}"
    if began is not None and began.plan_digest != plan.digest:
        raise RefusedError(f"{run} was started from another plan", hint="give the pilot another id")
    decided = next((event for event in ledger if isinstance(event, RoundDecided)), None)
    if decided is None:
        ended = next((event.reason.code.value for event in ledger if isinstance(event, RunEnded) and event.reason), "")
        why = f": {ended}" if ended else ""
        raise RefusedError(f"{run} ended without a decision{why}", hint="`orch show` tells more of it")
    return decided.incumbent or plan.incumbent


def _claim(pilot: PilotPlan, folder: Path) -> None:
    """Freeze the pilot under its id: what was begun goes on only as it was begun."""
    path = folder / "pilot.json"
    if path.exists():
        if PilotPlan.model_validate_json(path.read_bytes()).digest != pilot.digest:
            raise RefusedError(
                f"pilot {pilot.id} was begun from another plan", hint="give the changed one another id (`pilot:`)"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, pilot.model_dump_json(indent=1))
