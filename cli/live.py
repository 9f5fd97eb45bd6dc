"""The live table of a run on a terminal: the newest iteration, drawn again and again on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..workflows.model.event import Event
from ..workflows.model.view import RunView
from ..workflows.rules.projection import project
from .durations import show_duration
from .render import cut, iteration_lines, summary_line


@contextmanager
def live_table() -> Iterator[Callable[[list[Event]], None]]:
    """Draw while the block runs; it is given what takes the events so far."""
    console = Console(stderr=True)
    table = _LiveTable(console)
    with Live(console=console, transient=True, get_renderable=table.render, refresh_per_second=4):
        yield table.show


class _LiveTable:
    """The newest iteration as one table that is drawn again and again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view = project([])

    def show(self, seen: list[Event]) -> None:
        self._view = project(seen)

    def render(self) -> Text:
        width = self._console.width
        lines = [cut(line, width) for line in live_lines(self._view, datetime.now(UTC), width)]
        return Text("\n".join(lines[: max(self._console.height - 1, 1)]), no_wrap=True)


def live_lines(view: RunView, now: datetime, width: int) -> list[str]:
    """The running view: time so far, the newest iteration, the totals."""
    since = (now - datetime.fromisoformat(view.started_at)).total_seconds() if view.started_at else 0.0
    head = f"{view.id}  {view.status.value}  {show_duration(max(since, 0.0))}"
    newest = iteration_lines(view.iterations[-1], width) if view.iterations else ["measuring the unchanged tree"]
    return [head, *newest, summary_line(view)]
