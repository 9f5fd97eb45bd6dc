"""`orch shell`: look at a candidate's tree from the inside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import run_argument
from .session import ask
from .talk import clean, say

if TYPE_CHECKING:
    from ..activities.home import Home
    from ..activities.shells import Shell, Subject
    from ..workflows.model.event import Event
    from ..workflows.model.exit import Exit
    from .client import Client


@click.command()
@run_argument
@click.option("--candidate", type=int, help="Which candidate [default: the winner, else the newest].")
@click.option("--iteration", type=int, help="Of which iteration [default: the newest].")
@click.argument("argv", metavar="[-- CMD…]", nargs=-1, type=click.UNPROCESSED)
def shell(run: str, *, candidate: int | None, iteration: int | None, argv: tuple[str, ...]) -> None:
    """Open a shell, or run CMD, in a copy of a candidate's workspace as its agent saw it.

    Carried paths and set-up, environment, sandbox and working directory are the agent's; secrets are not there. What is
    changed there is thrown away at the end. The exit status is the command's.
    """
    from ..activities.shells import opened

    argv = argv or (os.environ.get("SHELL") or "sh",)
    home, subject = ask(lambda client: _subject(client, run, candidate, iteration))
    with _ended_by_signals(), opened(home, subject) as there:
        _fill(there)
        key = subject.attempt
        if sys.stdin.isatty():
            say(f"candidate {key.candidate} of iteration {key.iteration}: changes made here are thrown away at the end")
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


async def _subject(client: Client, run: str, candidate: int | None, iteration: int | None) -> tuple[Home, Subject]:
    """Whose tree; refused, with what there is, when the candidate or its tree is not there."""
    import asyncio

    from .runs import all_events

    events = await all_events(client.link, run)
    return client.home, await asyncio.to_thread(_find, client.home, run, events, candidate, iteration)


def _find(home: Home, run: str, events: list[Event], candidate: int | None, iteration: int | None) -> Subject:
    from dataclasses import replace

    from ..activities.artifacts import PREPARED
    from ..activities.shells import Subject, view_of
    from ..activities.store import Store
    from ..workflows.errors import RefusedError
    from ..workflows.model.event import IterationStarted
    from ..workflows.model.goal import RunPrepared
    from .selection import measured, select

    key = select(run, events, candidate=candidate, iteration=iteration)
    prepared = home.run(run) / PREPARED
    if not prepared.exists():
        raise RefusedError(f"the trees of {run} are not here", hint="they were collected, or lie on another host")
    facts = RunPrepared.model_validate_json(prepared.read_text(encoding="utf-8"))
    start = next(e.commit for e in events if isinstance(e, IterationStarted) and e.ordinal == key.iteration)
    subject = Subject(key, Store(home, facts.store), start, start, facts.contract, facts.sandbox)
    ended = measured(events, key)
    if ended is None:
        return replace(subject, commit=view_of(subject, home.attempt(key)))
    if ended.snapshot is None:
        raise RefusedError(
            f"candidate {key.candidate} of iteration {key.iteration} left no tree", hint=f"orch logs {run}"
        )
    return replace(subject, commit=ended.snapshot.commit)
