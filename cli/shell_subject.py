"""Whose tree `orch shell` shows: a candidate's, a lane's or a ticket's; refused, with what there is, where none is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..activities.artifacts import kept_prepared
from ..activities.home import Home
from ..activities.shells import Subject, view_of
from ..activities.store import Store
from ..workflows.errors import RefusedError
from ..workflows.model.event import Event, IterationStarted
from ..workflows.model.goal import RunPrepared
from ..workflows.model.round.lane_view import LaneView
from ..workflows.model.round.view import RoundView
from . import views
from .round_selection import attempt_of, change_of, lane_of, ticket_of
from .round_words import lane_words
from .selection import measured, select

WRAPPER = ("/.orch/",)
"""Of a lane: what `orch` laid into its workspace. A copy has nothing to submit."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for; see the options' help."""

    candidate: int | None = None
    iteration: int | None = None
    lane: str | None = None
    ticket: str | None = None


def subject_of(home: Home, run: str, events: Sequence[Event], wanted: Wanted) -> Subject:
    """Whose tree is meant. RefusedError where there is none, or none any more."""
    view = views.view_of(events)
    named = (wanted.lane is not None) + (wanted.ticket is not None)
    of_goal = wanted.candidate is not None or wanted.iteration is not None
    views.refuse_foreign(view, of_goal=of_goal or not named, of_round=named)
    if isinstance(view, RoundView):
        return _of_round(home, events, view, wanted)
    return _candidate(home, run, events, wanted)


def _candidate(home: Home, run: str, events: Sequence[Event], wanted: Wanted) -> Subject:
    key = select(run, events, candidate=wanted.candidate, iteration=wanted.iteration)
    facts = _prepared(home, run)
    start = next(e.commit for e in events if isinstance(e, IterationStarted) and e.ordinal == key.iteration)
    name = f"candidate {key.candidate} of iteration {key.iteration}"
    subject = Subject(name, key, Store(home, facts.store), start, start, facts.contract, facts.sandbox)
    ended = measured(events, key)
    if ended is None:
        return replace(subject, commit=view_of(subject, home.attempt(key)))
    if ended.snapshot is None:
        raise RefusedError(f"{name} left no tree", hint=f"orch logs {run}")
    return replace(subject, commit=ended.snapshot.commit)


def _prepared(home: Home, run: str) -> RunPrepared:
    facts = kept_prepared(home, run)
    if facts is None:
        raise RefusedError(f"the trees of {run} are not here", hint="they were collected, or lie on another host")
    return facts


def _of_round(home: Home, events: Sequence[Event], view: RoundView, wanted: Wanted) -> Subject:
    """The files that lie in a lane's workspace now, or those of a ticket, on the incumbent and its set-up."""
    ticket = None if wanted.ticket is None else ticket_of(view, wanted.ticket)
    lane = next(one for one in view.lanes if ticket in one.tickets) if ticket else lane_of(view, wanted.lane)
    key, facts = attempt_of(view, events, lane), _prepared(home, view.id)
    start = view.incumbent or ""
    commit = change_of(view, ticket=ticket.ticket)[1] if ticket else start
    name, store = f"ticket {ticket.ticket}" if ticket else f"lane {lane.id}", Store(home, facts.store)
    subject = Subject(name, key, store, start, commit, facts.contract, facts.sandbox, without=WRAPPER)
    if ticket:
        return subject
    if lane.end is not None:
        raise _closed(view, lane)
    return replace(subject, commit=view_of(subject, home.attempt(key)))


def _closed(view: RoundView, lane: LaneView) -> RefusedError:
    taken = [ticket.ticket for ticket in lane.tickets if ticket.commit]
    shown = [f"what it submitted: orch shell {view.id} --ticket {ticket}" for ticket in taken]
    hint = shown[-1] if shown else f"orch logs {view.id} --lane {lane.id}"
    return RefusedError(f"lane {lane.id} has no workspace any more: {lane_words(lane)}", hint=hint)
