"""`orch watch`: follow a run that somebody else started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import json_option, run_argument
from .session import ask, run_goes_on
from .talk import out, screen_width

if TYPE_CHECKING:
    from .client import Client
    from .exits import ExitStatus


@click.command()
@run_argument
@click.option("--once", is_flag=True, help="Print how it stands now, and return.")
@json_option
def watch(run: str, *, once: bool, as_json: bool) -> None:
    """Follow a run to its end; with --json print its events as JSON lines.

    The exit status is that of the run; with --once it is 0.
    """
    with run_goes_on(run):
        if once:
            _once(run, as_json=as_json)
        elif as_json:
            _lines(run)
        else:
            _follow(run)


def _once(run: str, *, as_json: bool) -> None:
    from .runs import all_events
    from .views import lines_of

    if as_json:
        for event in ask(lambda client: all_events(client.link, run)):
            out(event.model_dump_json())
    else:
        out("\n".join(lines_of(ask(lambda client: client.look(run)), width=screen_width())))


def _lines(run: str) -> None:
    from .exits import status_of

    async def stream(client: Client) -> ExitStatus:
        async for event in client.events(run):
            out(event.model_dump_json())
        return status_of(await client.look(run))

    raise SystemExit(ask(stream))


def _follow(run: str) -> None:
    from .follow import finish, follow

    finish(ask(lambda client: follow(client, run)), as_json=False)
