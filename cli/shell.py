"""`orch shell`: look at the tree of a candidate or of a lane from the inside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .exits import ExitStatus
from .params import run_argument
from .session import ask
from .talk import clean, say

if TYPE_CHECKING:
    from ..activities.home import Home
    from ..activities.shells import Shell, Subject
    from ..workflows.model.exit import Exit
    from .client import Client
    from .shell_subject import Wanted


@click.command()
@run_argument
@click.option("--candidate", type=int, help="Which candidate [default: the winner, else the newest].")
@click.option("--iteration", type=int, help="Of which iteration [default: the newest].")
@click.option("--lane", metavar="LANE", help="Of a round: what is in a lane's workspace, while it has one.")
@click.option("--ticket", metavar="TICKET", help="Of a round: the incumbent with a ticket's files.")
@click.argument("argv", metavar="[-- CMD…]", nargs=-1, type=click.UNPROCESSED)
def shell(run: str, *, argv: tuple[str, ...], **which: Any) -> None:
    """Open a shell, or run CMD, in a copy of a candidate's or lane's workspace as its agent saw it.

    Carried paths and set-up, environment, sandbox and working directory are the agent's; secrets are not there, nor is
    a lane's `.orch/round`. What is changed there is thrown away at the end. The exit status is the command's.
    """
    from ..activities.shells import opened
    from .shell_subject import Wanted

    argv = argv or (os.environ.get("SHELL") or "sh",)
    home, subject = ask(lambda client: _subject(client, run, Wanted(**which)))
    with _ended_by_signals(), opened(home, subject) as there:
        _fill(there)
        if sys.stdin.isatty():
            say(f"{subject.name}: changes made here are thrown away at the end")
        ended = _run(there, argv)
    raise SystemExit(_status(ended, argv[0]))


def _run(there: Shell, argv: tuple[str, ...]) -> Exit:
    from ..activities.processes import run_here

    return run_here(there.command(argv))


def _fill(there: Shell) -> None:
    """Make the workspace ready; a set-up that fails is told, for it may be what somebody came to look at."""
    import asyncio

    ended, said = asyncio.run(there.fill())
    if ended is not None and not ended.ok:
        say(f"warning: set-up failed here ({ended})\n{clean(said.tail or said.head)}".rstrip())


def _status(ended: Exit, program: str) -> int:
    from ..workflows.model.exit import ExitKind

    if ended.kind is ExitKind.NOT_STARTED:
        say(f"error: {clean(program)} cannot be started: {clean(ended.detail)}")
        return ExitStatus.REFUSED
    return 128 + (ended.number or 0) if ended.kind is ExitKind.SIGNALLED else ended.number or 0


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let TERM and HUP end this process by way of the clean-up."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _subject(client: Client, run: str, wanted: Wanted) -> tuple[Home, Subject]:
    import asyncio

    from .runs import all_events
    from .shell_subject import subject_of

    events = await all_events(client.link, run)
    return client.home, await asyncio.to_thread(subject_of, client.home, run, events, wanted)
