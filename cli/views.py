"""A run of any kind as people see it: each kind has a view, and its own way to be told."""

from __future__ import annotations

from collections.abc import Sequence

from ..workflows.errors import RefusedError
from ..workflows.model.event import Event
from ..workflows.model.round.event import RoundStarted
from ..workflows.model.round.view import RoundView
from ..workflows.model.view import RunView
from ..workflows.rules.projection import project
from ..workflows.rules.round_projection import project_round

AnyView = RunView | RoundView
"""The document of `orch show ID --json`, by the kind of run."""


def is_round(events: Sequence[Event]) -> bool:
    """Whether a ledger is a round's."""
    return bool(events) and isinstance(events[0], RoundStarted)


def view_of(events: Sequence[Event]) -> AnyView:
    """The view of whatever run a ledger is of; that of a goal before its first event."""
    return project_round(events) if is_round(events) else project(events)


def refuse_foreign(view: AnyView, *, of_goal: bool, of_round: int) -> None:
    """Refuse options that name what only another kind of run has; `of_round` is how many name a thing of a round."""
    if isinstance(view, RoundView) and of_goal:
        raise RefusedError(f"{view.id} is a round: it has no candidates", hint="name a --lane or a --ticket")
    if not isinstance(view, RoundView) and of_round:
        raise RefusedError(f"{view.id} is no round: it has no lanes", hint="name a --candidate")
    if of_round > 1:
        raise RefusedError("name one thing", hint="a ticket belongs to one lane: leave --lane out")


def lines_of(view: AnyView, *, link: str = "", width: int = 0) -> list[str]:
    """The view as text; a round's tables do without their spare columns where the `width` asks for it, 0 is any."""
    from .render import run_lines
    from .round_render import round_lines

    if isinstance(view, RoundView):
        return round_lines(view, link=link, width=width)
    return run_lines(view, link=link)
