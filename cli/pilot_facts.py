"""From the ledgers of one run of a pilot's arm to its facts: pure, all times from the first launch on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import hypot
from statistics import fmean
from typing import Any, TypeVar

from ..workflows.model.event import Event
from ..workflows.model.round.composition import StepResult
from ..workflows.model.round.event import (
    BindingClaimed,
    BindingSettled,
    GuardMeasured,
    HeadRerun,
    PicksMade,
    RoundDecided,
    RoundStarted,
    StepComposed,
    TicketMeasured,
    TicketQueued,
    TicketRejected,
    TicketTaken,
)
from ..workflows.model.round.pilot import Arm, LaneLoad, PilotRule, PilotRun
from ..workflows.model.round.plan import RoundPlan
from ..workflows.model.round.trial import Evaluation
from ..workflows.model.usage import Usage
from ..workflows.rules.pilot import needed

Ledger = Sequence[Event]
Kind = TypeVar("Kind")
Span = tuple[float, float]
"""From when to when, in seconds."""


def facts(arm: Arm, pair: int, ledgers: Sequence[Ledger], rule: PilotRule) -> PilotRun:
    """What one run of an arm shows; its rounds in order, each with its whole ledger up to its decision.

    Raises:
        ValueError: a ledger without a start or a decision.
    """
    plan, zero = _plan(ledgers[0]), _first_launch(ledgers[0])
    ends = [_only(ledger, RoundDecided).time - zero for ledger in ledgers]
    accepted = [_accepted(ledger) for ledger in ledgers]
    known = [evaluation for evaluation in accepted if evaluation]
    held, measured = sum(_held(ledgers)), _measurement_s(ledgers)
    usage = sum((event.usage for event in _all(ledgers, BindingSettled)), Usage())
    return PilotRun(
        arm=arm,
        pair=pair,
        rounds=tuple(_only(ledger, RoundStarted).run for ledger in ledgers),
        reached_s=_reached(accepted, ends, plan, rule),
        ended_s=ends[-1],
        gain=sum(evaluation.gain or 0.0 for evaluation in known),
        error=hypot(*(evaluation.error or 0.0 for evaluation in known)) if known else None,
        scale=known[0].scale.value if known else "log",
        lanes=tuple(_loads(ledgers, measured)),
        composed=sum(len(picks.picks) for picks in _all(ledgers, PicksMade)),
        fixed_s=fmean(_first_launch(ledger) - ledger[0].time for ledger in ledgers),
        device_s=held,
        busy=held / (len(plan.devices) * ends[-1]) if ends[-1] > 0 else 0.0,
        waits_s=tuple(_waits(ledgers)),
        tokens=usage.tokens,
        usd=usage.usd,
        **_composition(ledgers),
    )


def _composition(ledgers: Sequence[Ledger]) -> dict[str, Any]:
    steps = [event.step for event in _all(ledgers, StepComposed) if event.step.result is not StepResult.FIRST]
    ratios = [step.interaction if step.interaction_log is None else step.interaction_log for step in steps]
    causes = [event.cause.value for event in _all(ledgers, TicketRejected)]
    failed = [event.evaluation.verdict.value for event in _all(ledgers, TicketMeasured) if not event.evaluation.passed]
    return {
        "interactions": tuple(ratio for ratio in ratios if ratio is not None),
        "lost": sum(step.result is StepResult.SKIPPED for step in steps),
        "rejected": dict(sorted(Counter(causes + failed).items())),
    }


def _reached(
    accepted: Sequence[Evaluation | None], ends: Sequence[float], plan: RoundPlan, rule: PilotRule
) -> float | None:
    """When the gains of the reruns, one on the other, had come to the share of the first incumbent's value."""
    gain, start = 0.0, next((found.base for found in accepted if found), None)
    for evaluation, end in zip(accepted, ends, strict=True):
        if evaluation is None or evaluation.gain is None:
            continue
        gain += evaluation.gain
        if gain >= needed(rule, plan.metric.direction, evaluation.scale, start or 0.0):
            return end
    return None


def _accepted(ledger: Ledger) -> Evaluation | None:
    """What the rerun showed of the head that became the incumbent."""
    incumbent = _only(ledger, RoundDecided).incumbent
    reruns = (event.rerun for event in ledger if isinstance(event, HeadRerun))
    return next((rerun.evaluation for rerun in reruns if rerun.commit == incumbent), None)


def _loads(ledgers: Sequence[Ledger], measure_s: float) -> Iterator[LaneLoad]:
    """Each lane's agent seconds with none of its tickets pending, and its measured tickets, in the plan's order."""
    for ledger in ledgers:
        for lane in _plan(ledger).lanes:
            pending, counted = _pending(ledger, lane.id)
            worked = (_outside(span, pending) for span in _bindings(ledger, lane.id))
            yield LaneLoad(agent_s=sum(worked), submissions=counted, measure_s=measure_s)


def _pending(ledger: Ledger, lane: str) -> tuple[list[Span], int]:
    """From when to when a lane's tickets were in the queue or on a device, and how many there were."""
    queued = {e.submission.ticket: e.time for e in ledger if isinstance(e, TicketQueued)}
    measured = [e for e in ledger if isinstance(e, TicketMeasured) and e.lane == lane and e.ticket in queued]
    return [(queued[event.ticket], _free_at(event)) for event in measured], len(measured)


def _free_at(event: TicketMeasured) -> float:
    """When the device was free again: the validator may have had the last word much later."""
    return event.measurement.free_at or event.time


def _bindings(ledger: Ledger, lane: str) -> Iterator[Span]:
    claimed = {e.ordinal: e.time for e in ledger if isinstance(e, BindingClaimed) and e.lane == lane}
    for event in ledger:
        if isinstance(event, BindingSettled) and event.lane == lane and event.ordinal in claimed:
            yield claimed[event.ordinal], event.time


def _outside(span: Span, others: Iterable[Span]) -> float:
    """How much of a span no other one covers."""
    free, at = 0.0, span[0]
    for begin, end in sorted(others):
        free += max(0.0, min(begin, span[1]) - at)
        at = min(max(at, end), span[1])
    return free + span[1] - at


def _measurement_s(ledgers: Iterable[Ledger]) -> float:
    """Mean seconds for which a ticket keeps others from its device set, with its share of the later A/A measurements.

    That is from the queue to a free device; what is built ahead of its turn keeps nobody until the device turns to it.
    """
    spans: list[float] = []
    for ledger in ledgers:
        begun, free = dict[str, float](), defaultdict[str, float](float)
        for event in ledger:
            if isinstance(event, TicketTaken):
                begun[event.ticket] = event.time
            elif isinstance(event, TicketMeasured) and event.ticket in begun:
                device, end = event.measurement.device, _free_at(event)
                spans.append(end - max(begun[event.ticket], free[device]))
                free[device] = end
        spans[-1:] = [last + sum(_later_guards(ledger)) for last in spans[-1:]]
    return fmean(spans) if spans else 0.0


def _later_guards(ledger: Ledger) -> Iterator[float]:
    """Seconds of the A/A measurements after the first of each device set."""
    seen: set[str] = set()
    for event in ledger:
        if isinstance(event, GuardMeasured):
            if event.measurement.device in seen:
                yield event.measurement.held_s
            seen.add(event.measurement.device)


def _held(ledgers: Iterable[Ledger]) -> Iterator[float]:
    for event in (event for ledger in ledgers for event in ledger):
        if isinstance(event, GuardMeasured | TicketMeasured | StepComposed | HeadRerun) and event.measurement:
            yield event.measurement.held_s


def _waits(ledgers: Iterable[Ledger]) -> Iterator[float]:
    for ledger in ledgers:
        queued = {e.submission.ticket: e.time for e in ledger if isinstance(e, TicketQueued)}
        for event in (event for event in ledger if isinstance(event, TicketMeasured)):
            if event.ticket in queued:
                yield max(0.0, _free_at(event) - event.measurement.held_s - queued[event.ticket])


def _first_launch(ledger: Ledger) -> float:
    """When the first agent was launched; without one, when the round was decided."""
    launches = [event.time for event in ledger if isinstance(event, BindingClaimed)]
    return min(launches, default=_only(ledger, RoundDecided).time)


def _plan(ledger: Ledger) -> RoundPlan:
    return _only(ledger, RoundStarted).plan


def _all(ledgers: Iterable[Ledger], kind: type[Kind]) -> list[Kind]:
    return [event for ledger in ledgers for event in ledger if isinstance(event, kind)]


def _only(ledger: Ledger, kind: type[Kind]) -> Kind:
    found = next((event for event in ledger if isinstance(event, kind)), None)
    if found is None:
        raise ValueError(f"a ledger of a round without {kind.__name__}")
    return found
