"""Follow a run on stderr: one live table on a terminal, one line per event elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NoReturn

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..workflows.model.event import Event
from ..workflows.model.view import RunView
from ..workflows.rules.projection import project
from .client import Client
from .durations import show_duration
from .event_lines import event_line
from .exits import status_of
from .render import cut, iteration_lines, run_lines, summary_line
from .talk import out, out_json, say

Show = Callable[[list[Event]], None]


async def follow(client: Client, run: str) -> RunView:
    """Show progress until the run has ended; engine and worker are brought back when they die."""
    seen: list[Event] = []
    with _screen() as show:
        async for event in client.events(run):
            seen.append(event)
            show(seen)
    return await client.view(run)


def finish(view: RunView, *, as_json: bool, link: str = "") -> NoReturn:
    """Print the outcome on stdout and end with the exit status that it means."""
    if as_json:
        out_json(view)
    else:
        out("\n".join(run_lines(view, link=link)))
    raise SystemExit(status_of(view))


@contextmanager
def _screen() -> Iterator[Show]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda seen: say(event_line(seen[-1]))
        return
    screen = _LiveTable(console)
    with Live(console=console, transient=True, get_renderable=screen.render, refresh_per_second=4):
        yield screen.show


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
