"""`round-ledger.json`: a round as one document of plain JSON values, negatives included; see docs/round-ledger.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ..estimation.moments import median
from ..model.base import Value
from ..model.budget import BindingState
from ..model.event import Event
from ..model.round import event as ev
from ..model.round.lane_view import LaneView, TicketView
from ..model.round.plan import LanePlan
from ..model.round.trial import Measurement
from ..model.round.view import RoundView

E = TypeVar("E")
Document = dict[str, Any]

SCHEMA = 1
"""Raised when a reader of the old document would misread the new one; new keys alone do not raise it."""

MAX_VALUES = 20_000
"""Raw values that a document holds whole; of a larger round it names the events that hold them."""


def round_document(events: Sequence[Event], view: RoundView) -> Document:
    """The document of a round that was decided: `view` is the projection of the same events.

    It holds no times of the run's end and no promotion: those come later, and stand in the run's own ledger.
    """
    started = _last(events, ev.RoundStarted)
    if started is None:
        raise ValueError("a ledger without its beginning has no document")
    decided, evidence = _last(events, ev.RoundDecided), _Evidence(events)
    return {
        "schema": SCHEMA,
        "kind": "round-ledger",
        "campaign": view.campaign,
        "round": view.round,
        "run": view.id,
        "started_at": view.started_at,
        "plan": _plain(started.plan),
        "plan_digest": started.plan_digest,
        "incumbent": view.incumbent,
        "new_incumbent": view.new_incumbent,
        "new_tree": decided.tree if decided else None,
        "chain": list(view.chain),
        "sandbox": view.sandbox,
        "noise": {device.name: _plain(device.noise) for device in view.devices if device.noise},
        "guards": [_guard(event, evidence) for event in _all(events, ev.GuardMeasured)],
        "pauses": list(_pauses(events)),
        "lanes": [
            _lane(events, plan, lane, evidence) for plan, lane in zip(started.plan.lanes, view.lanes, strict=True)
        ],
        "composition": _composition(events, view, evidence),
        "rejects": dict(view.rejects),
        "queue": _waits(ticket.wait_s for ticket in view.tickets if ticket.wait_s is not None),
        "devices": [one.model_dump(include={"name", "measurements", "held_s", "busy"}) for one in view.devices],
        "device_hours": view.device_hours,
        "usage": _plain(view.usage),
        "warnings": list(view.warnings),
        "samples": "whole" if evidence.whole else "by_event",
    }


class _Evidence:
    """What stands in the events of a ticket, and how raw values get into a document: whole, or by their event."""

    def __init__(self, events: Sequence[Event]) -> None:
        found = [getattr(event, "measurement", None) for event in events]
        runs = (len(pair.a) + len(pair.b) for one in found if isinstance(one, Measurement) for pair in one.pairs)
        self.whole = sum(runs) <= MAX_VALUES
        self.measured = {event.ticket: event for event in _all(events, ev.TicketMeasured)}
        told = (event.submission for event in events if isinstance(event, ev.TicketQueued | ev.TicketRejected))
        self.submissions = {submission.ticket: submission for submission in told if submission is not None}

    def of(self, event: Event, found: Measurement) -> Document:
        """The facts of a measurement."""
        facts = found.model_dump(mode="json", exclude={"pairs", "output"})
        pairs = [
            {"order": pair.order, "a": [run.value for run in pair.a], "b": [run.value for run in pair.b]}
            for pair in found.pairs
        ]
        return {**facts, "event": event.seq, "at": event.at, "pairs": pairs if self.whole else None}


def _all(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _last(events: Sequence[Event], kind: type[E]) -> E | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)


def _plain(value: Value | None) -> Document | None:
    return None if value is None else value.model_dump(mode="json")


def _guard(event: ev.GuardMeasured, evidence: _Evidence) -> Document:
    return {"result": _plain(event.result), "measurement": evidence.of(event, event.measurement)}


def _pauses(events: Sequence[Event]) -> Iterator[Document]:
    """The times at which a device set measured no ticket; one that was not over has no end."""
    for place, event in enumerate(events):
        if isinstance(event, ev.QueuePaused):
            resumed = (e for e in _all(events[place:], ev.QueueResumed) if e.device == event.device)
            end = next(resumed, None)
            yield {"device": event.device, "why": event.why, "from": event.at, "to": end.at if end else None}


def _lane(events: Sequence[Event], plan: LanePlan, lane: LaneView, evidence: _Evidence) -> Document:
    return {
        "id": lane.id,
        "entry": _plain(plan.entry),
        "condition": plan.condition,
        "agent": plan.agent,
        "budget": _plain(plan.budget),
        "deadline": lane.deadline,
        "attempts": list(_attempts(events, lane.id)),
        "end": lane.end.value if lane.end else None,
        "detail": lane.detail,
        "result": lane.result.value if lane.result else None,
        "kept": lane.kept,
        "usage": _plain(lane.usage),
        "tickets": [_ticket(ticket, evidence) for ticket in lane.tickets],
    }


def _attempts(events: Sequence[Event], lane: str) -> Iterator[Document]:
    """The lane's bindings, with what each might have used and what it did use."""
    settled = {e.ordinal: e for e in _all(events, ev.BindingSettled) if e.lane == lane}
    cancelled = {e.ordinal: e for e in _all(events, ev.BindingCancelled) if e.lane == lane}
    claimed = {e.ordinal for e in _all(events, ev.BindingClaimed) if e.lane == lane}
    for event in _all(events, ev.BindingReserved):
        if event.lane != lane:
            continue
        ordinal = event.binding.ordinal
        bound = event.binding.model_dump(mode="json", exclude={"state", "usage"})
        if end := settled.get(ordinal):
            facts = end.model_dump(mode="json", include={"usage", "exit", "outcome", "message"})
            yield {**bound, "state": BindingState.SETTLED.value, **facts}
        elif ordinal in cancelled:
            yield {**bound, "state": BindingState.CANCELLED.value, "why": cancelled[ordinal].why}
        else:
            yield {**bound, "state": (BindingState.CLAIMED if ordinal in claimed else BindingState.RESERVED).value}


def _ticket(ticket: TicketView, evidence: _Evidence) -> Document:
    measured = evidence.measured.get(ticket.ticket)
    return {
        **ticket.model_dump(mode="json", exclude={"evaluation"}),
        "submission": _plain(evidence.submissions.get(ticket.ticket)),
        "evaluation": _plain(ticket.evaluation),
        "measurement": evidence.of(measured, measured.measurement) if measured else None,
    }


def _composition(events: Sequence[Event], view: RoundView, evidence: _Evidence) -> Document:
    picks = [pick for event in _all(events, ev.PicksMade) for pick in event.picks]
    steps, reruns = _all(events, ev.StepComposed), _all(events, ev.HeadRerun)
    return {
        "picks": [{"lane": pick.lane, "ticket": pick.ticket, "gain": pick.evaluation.gain} for pick in picks],
        "steps": [
            {**step.model_dump(mode="json"), "measurement": _measured(event, event.measurement, evidence)}
            for step, event in zip(view.steps, steps, strict=True)
        ],
        "reruns": [
            {**rerun.model_dump(mode="json"), "measurement": _measured(event, event.measurement, evidence)}
            for rerun, event in zip(view.reruns, reruns, strict=True)
        ],
    }


def _measured(event: Event, found: Measurement | None, evidence: _Evidence) -> Document | None:
    return evidence.of(event, found) if found else None


def _waits(found: Iterable[float]) -> Document:
    """How long tickets waited for their device set, in seconds."""
    waits = sorted(found)
    if not waits:
        return {"tickets": 0, "median_s": None, "longest_s": None, "total_s": 0.0}
    return {"tickets": len(waits), "median_s": median(waits), "longest_s": waits[-1], "total_s": sum(waits)}
