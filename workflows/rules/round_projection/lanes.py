"""Lanes: where each is, what its agent's launches came to, what became of its tickets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...model.budget import BindingState
from ...model.event import Event
from ...model.round import event as ev
from ...model.round.lane_view import AttemptView, LaneState, LaneView, TicketView
from ...model.round.plan import LanePlan
from ...model.round.ticket import TicketState
from ...model.usage import Usage
from ...model.view import UsageView
from .reading import cut, every, last


def lane_views(
    events: Sequence[Event], plans: Iterable[LanePlan], *, over: bool
) -> tuple[tuple[LaneView, ...], tuple[str, ...], UsageView]:
    """The lanes in the plan's order, warnings about their budgets, and what all of them used."""
    parts = _parts(events)
    used = {plan.id: sum((e.usage for e in every(parts[plan.id], ev.BindingSettled)), Usage()) for plan in plans}
    views = tuple(_lane(plan, parts[plan.id], used[plan.id], over=over) for plan in plans)
    blind = (line for plan in plans for line in _blind(plan, parts[plan.id], used[plan.id]))
    return views, tuple(blind), UsageView.of(sum(used.values(), Usage()))


def _parts(events: Sequence[Event]) -> dict[str, list[Event]]:
    """The events that tell of each lane."""
    parts: dict[str, list[Event]] = defaultdict(list)
    owner: dict[str, str] = {}
    for event in events:
        if isinstance(event, ev.TicketQueued):
            owner[event.submission.ticket] = event.submission.lane
        for lane in _whose(event, owner):
            parts[lane].append(event)
    return parts


def _whose(event: Event, owner: dict[str, str]) -> Iterator[str]:
    match event:
        case ev.TicketQueued():
            yield event.submission.lane
        case ev.TicketTaken() | ev.TicketPutBack():
            yield owner[event.ticket]
        case ev.DeviceTurned(ticket=str(ticket)):
            yield owner[ticket]
        case ev.PicksMade():
            yield from (pick.lane for pick in event.picks)
        case ev.StepComposed():
            yield event.step.lane
        case ev.RoundDecided():
            yield from event.lanes
        case _ if isinstance(lane := getattr(event, "lane", None), str):
            yield lane
        case _:
            return


def _lane(plan: LanePlan, events: Sequence[Event], used: Usage, *, over: bool) -> LaneView:
    started, ready, ended = last(events, ev.LaneStarted), last(events, ev.LaneReady), last(events, ev.LaneEnded)
    step, state = last(events, ev.StepComposed), LaneState.ENDED if over else _state(events)
    rest = last(events, ev.LaneWaiting) if state is LaneState.RESTING else None
    return LaneView(
        id=plan.id,
        entry=plan.entry.id,
        plane=plan.entry.plane,
        stage=cut(plan.entry.stage),
        agent=plan.agent,
        state=state,
        deadline=started.deadline if started else None,
        attempts=_attempts(events),
        max_attempts=plan.budget.attempts,
        tickets=_tickets(plan.id, events),
        max_submissions=plan.submissions,
        result=step.step.result if step else None,
        kept=last(events, ev.RoundDecided) is not None,
        resting_until=rest.until if rest else None,
        end=ended.end if ended else None,
        detail=cut((ended.detail if ended else _rest(rest)) or (ready.opened.detail if ready else "")),
        usage=UsageView.of(used),
    )


def _rest(rest: ev.LaneWaiting | None) -> str:
    """Why a lane rests, in words."""
    return f"{rest.outcome.kind.value.replace('_', ' ')}: {rest.outcome.detail}".rstrip(": ") if rest else ""


def _state(events: Sequence[Event]) -> LaneState:
    states: dict[type[Event], LaneState] = {
        ev.LaneStarted: LaneState.OPENING,
        ev.LaneReady: LaneState.OPEN,
        ev.BindingClaimed: LaneState.WORKING,
        ev.BindingSettled: LaneState.OPEN,
        ev.LaneWaiting: LaneState.RESTING,
        ev.LaneResumed: LaneState.OPEN,
        ev.LaneEnded: LaneState.ENDED,
    }
    told = (states[type(event)] for event in reversed(events) if type(event) in states)
    return next(told, LaneState.WAITING)


def _blind(plan: LanePlan, events: Sequence[Event], used: Usage) -> Iterator[str]:
    """Warn where a budget is set in a unit that the agent does not report: it cannot hold there."""
    caps = {"tokens": (plan.budget.tokens, used.tokens), "money": (plan.budget.usd, used.usd)}
    for unit, (cap, known) in caps.items():
        if cap is not None and known is None and every(events, ev.BindingSettled):
            yield f"the agent of lane {plan.id} reports no {unit}: the lane's budget in {unit} cannot hold"


def _attempts(events: Sequence[Event]) -> tuple[AttemptView, ...]:
    found: dict[int, AttemptView] = {}
    for event in events:
        match event:
            case ev.BindingReserved():
                found[event.binding.ordinal] = AttemptView(ordinal=event.binding.ordinal, state=event.binding.state)
            case ev.BindingClaimed():
                found[event.ordinal] = AttemptView(ordinal=event.ordinal, state=BindingState.CLAIMED)
            case ev.BindingCancelled():
                state, why = BindingState.CANCELLED, cut(event.why)
                found[event.ordinal] = AttemptView(ordinal=event.ordinal, state=state, detail=why)
            case ev.BindingSettled():
                found[event.ordinal] = _settled(event)
            case _:
                pass
    return tuple(found.values())


def _settled(event: ev.BindingSettled) -> AttemptView:
    return AttemptView(
        ordinal=event.ordinal,
        state=BindingState.SETTLED,
        exit=cut(str(event.exit)),
        outcome=event.outcome.kind.value,
        detail=cut(event.outcome.detail),
        usage=UsageView.of(event.usage),
    )


def _tickets(lane: str, events: Sequence[Event]) -> tuple[TicketView, ...]:
    """What became of a lane's tickets: each event adds to the facts of one, and the last word counts."""
    found: dict[str, dict[str, Any]] = {}
    queued: dict[str, float] = {}
    for event in events:
        if isinstance(event, ev.TicketQueued):
            queued[event.submission.ticket] = event.time
        if isinstance(event, ev.TicketQueued | ev.TicketRejected) and (it := event.submission):
            facts = {"ticket": it.ticket, "at": event.at, "commit": it.commit, "files": it.files}
            found[it.ticket] = {**facts, "state": TicketState.QUEUED, "put_back": 0}
        for ticket, facts in _told(lane, event, queued):
            found[ticket] |= facts
            found[ticket]["put_back"] += isinstance(event, ev.TicketPutBack)
    return tuple(TicketView(**facts) for facts in found.values())


def _told(lane: str, event: Event, queued: dict[str, float]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an event changes of which ticket."""
    match event:
        case ev.TicketRejected():
            yield event.ticket, {"state": TicketState.REJECTED, "cause": event.cause, "detail": cut(event.detail)}
        case ev.TicketTaken():
            yield event.ticket, {"device": event.device, "ordinal": event.measurement}
        case ev.DeviceTurned(ticket=str(ticket)):
            yield ticket, {"state": TicketState.MEASURING}
        case ev.TicketPutBack():
            yield event.ticket, {"state": TicketState.QUEUED}
        case ev.TicketMeasured():
            held, free_at = event.measurement.held_s, event.measurement.free_at or event.time
            facts = {"evaluation": event.evaluation, "held_s": held}
            wait = max(0.0, round(free_at - held - queued[event.ticket], 3))
            yield event.ticket, {"state": TicketState.MEASURED, "wait_s": wait, **facts}
        case ev.PicksMade():
            for pick in (pick for pick in event.picks if pick.lane == lane):
                yield pick.ticket, {"picked": True}
        case _:
            return
