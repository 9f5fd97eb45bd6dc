"""Follow a run on stderr: one live table on a terminal, one line per event elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..workflows.model.event import Event
from .client import Client
from .event_lines import event_line
from .exits import status_of
from .talk import out, out_json, say, screen_width
from .views import AnyView, lines_of

Show = Callable[[list[Event]], None]


async def follow(client: Client, run: str) -> AnyView:
    """Show progress until the run has ended; engine and worker are brought back when they die."""
    seen: list[Event] = []
    with _screen() as show:
        async for event in client.events(run):
            seen.append(event)
            show(seen)
    return await client.look(run)


def finish(view: AnyView, *, as_json: bool, link: str = "") -> NoReturn:
    """Print the outcome on stdout and end with the exit status that it means."""
    if as_json:
        out_json(view)
    else:
        out("\n".join(lines_of(view, link=link, width=screen_width())))
    raise SystemExit(status_of(view))


@contextmanager
def _screen() -> Iterator[Show]:
    if not sys.stderr.isatty():
        yield lambda seen: say(event_line(seen[-1], seen[0]))
        return
    from .live import live_table

    with live_table() as show:
        yield show
