"""`orch list`, `show` and `ledger`: look at runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import json_option, run_argument
from .session import ask
from .talk import clean, out, out_json, screen_width

if TYPE_CHECKING:
    from .client import Client


@click.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List all runs, newest first."""
    from .render import columns

    rows = ask(lambda client: client.list())
    if as_json:
        out_json(rows)
    elif rows:
        lines = [("id", "status", "started", "tree", "goal")]
        lines += [
            (row.id, row.status.value, row.started_at[:16].replace("T", " "), clean(row.repo), row.goal) for row in rows
        ]
        out("\n".join(columns(lines)))
    else:
        out("no runs yet\nnext: orch start goal TEXT --verify CMD --agent SPEC")


@click.command()
@run_argument
@json_option
def show(run: str, *, as_json: bool) -> None:
    """Show who won and why, or what a round composed; and what to do next."""
    from .views import lines_of

    async def look(client: Client) -> None:
        view = await client.look(run)
        if as_json:
            out_json(view)
        else:
            out("\n".join(lines_of(view, link=await client.link.page_of(run), width=screen_width())))

    ask(look)


@click.command()
@run_argument
@json_option
def ledger(run: str, *, as_json: bool) -> None:
    """Print the run's events, oldest first; with --json as JSON lines."""
    from .event_lines import event_line
    from .runs import all_events

    events = ask(lambda client: all_events(client.link, run))
    for event in events:
        out(event.model_dump_json() if as_json else f"{event.seq:>4}  {event_line(event, events[0])}")
