"""Which lane, ticket or measurement of a round is meant, and which change. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey
from ..workflows.model.base import Sha
from ..workflows.model.event import Event
from ..workflows.model.round import event as ev
from ..workflows.model.round.lane_view import LaneView, TicketView
from ..workflows.model.round.view import RoundView
from .nearest import nearest

MEASUREMENTS = 2
"""The iteration in the keys of measurements; lanes have 1."""


def lane_of(view: RoundView, name: str | None) -> LaneView:
    """The lane of that name; without one a lane of the new incumbent, else one with a passing ticket, else the last."""
    if name is not None:
        found = {lane.id: lane for lane in view.lanes}
        if name not in found:
            raise RefusedError(f"{view.id} has no lane {name}", hint=_have(name, found))
        return found[name]
    begun = [lane for lane in view.lanes if lane.deadline is not None]
    if not begun:
        raise RefusedError(f"{view.id} has started no lane", hint=f"orch show {view.id}")
    return next(
        (lane for lane in begun if lane.kept),
        next((lane for lane in begun if lane.best), begun[-1]),
    )


def attempt_of(view: RoundView, events: Sequence[Event], lane: LaneView) -> AttemptKey:
    """The key that names a lane's folder; refused before it began."""
    keys = (event.attempt for event in events if isinstance(event, ev.LaneStarted) and event.lane == lane.id)
    found = next(keys, None)
    if found is None:
        raise RefusedError(f"lane {lane.id} of {view.id} has not begun", hint=f"orch show {view.id}")
    return found


def ticket_of(view: RoundView, name: str) -> TicketView:
    """The ticket of that id; the end of one will do where it is the only one."""
    found = {ticket.ticket: ticket for ticket in view.tickets}
    ending = [ticket for id_, ticket in found.items() if id_ == name or id_.endswith(f"-{name}")]
    if len(ending) != 1:
        raise RefusedError(f"{view.id} has no ticket {name}", hint=_have(name, found))
    return ending[0]


def measurement_of(view: RoundView, ordinal: int) -> AttemptKey:
    """The key that names a measurement's folder."""
    if ordinal < 1:
        raise RefusedError(f"{view.id} has no measurement {ordinal}", hint="they are counted from 1")
    return AttemptKey(run=view.id, iteration=MEASUREMENTS, candidate=ordinal % 1_000_000, binding=ordinal)


def change_of(view: RoundView, lane: str | None = None, ticket: str | None = None) -> tuple[Sha, Sha]:
    """The commits before and after a ticket's files, a lane's best ticket's, or the whole round's."""
    if view.incumbent is None:
        raise RefusedError(f"{view.id} has no incumbent yet", hint=f"orch show {view.id}")
    if ticket is not None:
        return view.incumbent, _commit(view, ticket_of(view, ticket))
    if lane is not None:
        found = lane_of(view, lane)
        known = [one for one in found.tickets if one.commit]
        if not known:
            raise RefusedError(
                f"lane {lane} of {view.id} submitted nothing that was taken", hint=f"orch show {view.id}"
            )
        return view.incumbent, _commit(view, found.best or known[-1])
    if view.new_incumbent is None:
        fact = "the incumbent stays" if view.decided else "it is not decided yet"
        raise RefusedError(
            f"{view.id} has no new incumbent: {fact}",
            hint=f"what a lane found: orch diff {view.id} --lane LANE, or --ticket TICKET",
        )
    return view.incumbent, view.new_incumbent


def store_of(run: str, events: Sequence[Event]) -> str:
    """The key of the store that the round's commits lie in; refused before the host was ready."""
    found = next((event.store for event in events if isinstance(event, ev.RoundReady)), "")
    if not found:
        raise RefusedError(f"{run} has no incumbent yet", hint=f"orch show {run}")
    return found


def _commit(view: RoundView, ticket: TicketView) -> Sha:
    if ticket.commit is None:
        raise RefusedError(f"{ticket.ticket} was not taken in: there is no tree of it", hint=f"orch show {view.id}")
    return ticket.commit


def _have(name: str, known: Iterable[str]) -> str:
    close = nearest(name, list(known))
    return f"did you mean {close}?" if close else f"it has {', '.join(known) or 'none'}"
