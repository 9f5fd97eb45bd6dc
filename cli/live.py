"""The live table of a run on a terminal: what moves of it, drawn again and again on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..workflows.model.event import Event
from ..workflows.model.round.view import RoundView
from ..workflows.model.view import RunView
from .durations import show_duration
from .render import cut, iteration_lines, summary_line
from .round_render import lane_table, queue_lines, round_summary, step_table, ticket_table
from .views import AnyView, view_of

NEWEST = 12
"""Tickets that are drawn at most."""

BESIDE = 5
"""Lines round the tickets and what stands above them: the head, the tickets' headings, two gaps, the totals."""


@contextmanager
def live_table() -> Iterator[Callable[[list[Event]], None]]:
    """Draw while the block runs; it is given what takes the events so far."""
    console = Console(stderr=True)
    table = _LiveTable(console)
    with Live(console=console, transient=True, get_renderable=table.render, refresh_per_second=4):
        yield table.show


class _LiveTable:
    """A run's tables, drawn again and again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view = view_of([])

    def show(self, seen: list[Event]) -> None:
        self._view = view_of(seen)

    def render(self) -> Text:
        width, height = self._console.width, max(self._console.height - 1, 2)
        lines = [cut(line, width) for line in live_lines(self._view, datetime.now(UTC), width, height)]
        shown = lines if len(lines) <= height else [*lines[: height - 1], lines[-1]]
        return Text("\n".join(shown), no_wrap=True)


def live_lines(view: AnyView, now: datetime, width: int, height: int = 0) -> list[str]:
    """The running view: time so far; the newest iteration, or a round's queue, lanes and newest tickets; the totals.

    Of a round's tickets as many as a screen of that `height` has room for, if it is given.
    """
    since = (now - datetime.fromisoformat(view.started_at)).total_seconds() if view.started_at else 0.0
    head = f"{view.id}  {view.status.value}  {show_duration(max(since, 0.0))}"
    if isinstance(view, RoundView):
        return [head, *_round_lines(view, width, height), round_summary(view)]
    return [head, *_iteration_lines(view, width), summary_line(view)]


def _iteration_lines(view: RunView, width: int) -> list[str]:
    return iteration_lines(view.iterations[-1], width) if view.iterations else ["measuring the unchanged tree"]


def _round_lines(view: RoundView, width: int, height: int) -> list[str]:
    """Queue and device sets, lanes, then what moves: the composition once there is one, else the newest tickets."""
    fixed = [*queue_lines(view), "", *lane_table(view, width)]
    room = height - len(fixed) - BESIDE if height else NEWEST
    moving = step_table(view, width) or ticket_table(view, width, min(max(room, 1), NEWEST))
    return [*fixed, *(["", *moving] if moving else []), ""]
