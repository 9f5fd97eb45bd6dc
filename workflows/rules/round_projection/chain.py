"""The composition: its steps beside the gains of the lanes alone, and the heads that were measured anew."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.event import Event
from ...model.round import event as ev
from ...model.round.view import RerunView, StepView
from .reading import every


def alone(events: Sequence[Event]) -> dict[str, float]:
    """The gains of the picked tickets by themselves, by lane."""
    picks = [pick for event in every(events, ev.PicksMade) for pick in event.picks]
    return {pick.lane: pick.evaluation.gain for pick in picks if pick.evaluation.gain is not None}


def step_views(events: Sequence[Event]) -> tuple[StepView, ...]:
    """The steps, in order."""
    gains = alone(events)
    steps = [event.step for event in every(events, ev.StepComposed)]
    return tuple(StepView(**dict(step), alone=gains.get(step.lane)) for step in steps)


def rerun_views(events: Sequence[Event]) -> tuple[RerunView, ...]:
    """The reruns, in order; the step of a single lane is its ticket."""
    gains = alone(events)
    steps = {event.step.lane: event.step.evaluation.gain for event in every(events, ev.StepComposed)}
    found = []
    for rerun in (event.rerun for event in every(events, ev.HeadRerun)):
        by_step = gains if len(rerun.lanes) == 1 else steps
        promised = {"tickets": _sum(gains, rerun.lanes), "steps": _sum(by_step, rerun.lanes)}
        found.append(RerunView.model_validate({**dict(rerun), **promised}))
    return tuple(found)


def _sum(gains: dict[str, float] | dict[str, float | None], lanes: Sequence[str]) -> float | None:
    """The gains of the lanes added up; None when one is unknown."""
    parts = [gains.get(lane) for lane in lanes]
    return sum(part for part in parts if part is not None) if None not in parts else None
