"""`orch report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .params import run_argument
from .session import ask
from .talk import clean, out, say

if TYPE_CHECKING:
    from ..workflows.model.event import Event
    from ..workflows.model.round.view import RoundView
    from .client import Client
    from .reporting.round_page import RoundReport


@click.command()
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file, or - for stdout [default: ID.html].",
)
def report(run: str, *, output: Path | None) -> None:
    """Draw a run as one HTML file: of a round its lanes, composition, gains with their noise, devices and samples.

    The file loads nothing from anywhere and runs no script. A live run is drawn as far as it has come.
    """
    text = ask(lambda client: _page(client, run))
    path = output or Path(f"{run}.html")
    if str(path) == "-":
        out(text)
        return
    _write(path, text)
    say(f"written: {clean(str(path))}")


def _write(path: Path, text: str) -> None:
    from ..activities.artifacts import write_whole
    from ..workflows.errors import RefusedError

    try:
        write_whole(path, text)
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror}", hint="name another file with -o") from error


async def _page(client: Client, run: str) -> str:
    import asyncio

    from ..workflows.model.round.view import RoundView
    from .reporting.goal_page import goal_page
    from .reporting.round_page import round_page
    from .runs import all_events

    view, events = await client.look(run), await all_events(client.link, run)
    if isinstance(view, RoundView):
        return round_page(await asyncio.to_thread(_report, client, view, events))
    return goal_page(view)


def _report(client: Client, view: RoundView, events: list[Event]) -> RoundReport:
    """The round with what its campaign's record says of it and of the other rounds."""
    from ..activities.campaigns import documents, read_record
    from .reporting.round_page import RoundReport
    from .round_chain import in_order

    rows = read_record(client.home, view.campaign).revisions if view.campaign else ()
    return RoundReport(
        view=view,
        events=events,
        rounds=in_order(view, documents(client.home, view.campaign)),
        revisions=tuple(row for row in rows if row.run == view.id),
    )
