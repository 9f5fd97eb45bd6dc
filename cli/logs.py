"""`orch logs`: what an agent said and did, what set-up and failing rungs printed, and what the agent was told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .params import run_argument
from .session import ask, run_goes_on
from .talk import say, screen_width

if TYPE_CHECKING:
    from pathlib import Path

    from ..workflows.model.attempt import AttemptKey
    from ..workflows.model.event import Event
    from ..workflows.model.round.view import RoundView
    from .attempt_outputs import Outputs, Subject
    from .client import Client
    from .outputs import Printer

_POLL_S = 0.3


@dataclass(frozen=True)
class Wanted:
    """What was asked for; see the options' help."""

    run: str
    candidate: int | None
    iteration: int | None
    lane: str | None
    ticket: str | None
    measurement: int | None
    review: bool
    prompt: bool
    follow: bool
    raw: bool
    debug: bool

    @property
    def of_goal(self) -> bool:
        """Whether something was named that only a goal has."""
        return self.review or self.candidate is not None or self.iteration is not None

    @property
    def of_round(self) -> int:
        """How many things were named that only a round has."""
        return sum(named is not None for named in (self.lane, self.ticket, self.measurement))


@click.command()
@run_argument
@click.option("--candidate", type=int, help="Which candidate [default: the winner, else the latest].")
@click.option("--iteration", type=int, help="Which iteration [default: the newest].")
@click.option("--lane", metavar="LANE", help="Of a round: which lane [default: one of the new incumbent].")
@click.option("--ticket", metavar="TICKET", help="Of a round: the measurement of that ticket.")
@click.option("--measurement", type=int, metavar="N", help="Of a round: its Nth measurement.")
@click.option("--review", is_flag=True, help="The reviewer's output instead of a candidate's.")
@click.option("--prompt", is_flag=True, help="Print what the agent was told, and nothing else.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing while the agent runs.")
@click.option("--raw", is_flag=True, help="Print the bytes as they are, events and escape sequences too.")
@click.option("-v", "--debug", is_flag=True, help="Count the agent's events that orch does not know.")
def logs(run: str, **options: Any) -> None:
    """Print what a candidate's agent said and did, and what its failing rungs printed; for rounds, a lane's agent."""
    wanted = Wanted(run, **options)
    _refuse_contradictions(wanted)
    with run_goes_on(run):
        ask(lambda client: _logs(client, wanted))


def _refuse_contradictions(wanted: Wanted) -> None:
    from ..workflows.errors import RefusedError

    if wanted.review and wanted.candidate is not None:
        hint = "a reviewer reads the head, no candidate: name the --iteration"
        raise RefusedError("--review and --candidate contradict each other", hint=hint)
    if wanted.prompt and wanted.follow:
        raise RefusedError("--prompt and --follow contradict each other", hint="a prompt does not grow: leave out -f")
    if wanted.of_round > 1 or (wanted.of_round and wanted.of_goal):
        hint = "a round has lanes, tickets and measurements, a goal candidates, iterations and reviews"
        raise RefusedError("name one thing", hint=hint)


async def _logs(client: Client, wanted: Wanted) -> None:
    from .attempt_outputs import Outputs
    from .outputs import Printer

    events = await _events(client, wanted)
    run_folder = client.home.run(wanted.run)
    subject = _subject(run_folder, events, wanted)
    await asyncio.to_thread(_fetch, client, events, subject)
    say(f"{subject}: {subject.folder}")
    outputs, printer = Outputs(subject, raw=wanted.raw, width=screen_width()), Printer(debug=wanted.debug)
    if outputs.trouble:
        say(f"warning: {outputs.trouble}: its output is shown as it is")
    if wanted.prompt:
        _print_prompts(outputs, printer, subject)
        return
    if wanted.follow and not subject.over(events):
        await _follow(client, events, subject, outputs, printer)
    for output in (*outputs.jobs(), *outputs.rungs(events, run_folder)):
        printer.end(output)


def _fetch(client: Client, events: list[Event], subject: Subject) -> None:
    """What a candidate printed on another host is published when it has ended."""
    from ..workflows.model.event import BaselineTaken
    from .fetching import exchange_of, fetch_logs

    store = next((event.store for event in events if isinstance(event, BaselineTaken)), "")
    if not subject.key.candidate or exchange_of(client.home, subject.key.run, store) is None:
        return
    if not fetch_logs(client.home, store, subject.key) and not subject.folder.exists():
        say(f"{subject} is on another host: what it prints comes when it has ended")


async def _events(client: Client, wanted: Wanted) -> list[Event]:
    """The ledger so far; to follow an attempt that has not begun, wait for it."""
    from ..workflows.model.event import AttemptStarted, RunEnded
    from ..workflows.model.round.event import LaneStarted
    from .runs import all_events

    def there(event: Event) -> bool:
        if isinstance(event, LaneStarted):
            return wanted.lane in {None, event.lane}
        if not isinstance(event, AttemptStarted):
            return isinstance(event, RunEnded)
        key = event.attempt
        return wanted.candidate in {None, key.candidate} and wanted.iteration in {None, key.iteration}

    events = await all_events(client.link, wanted.run)
    if wanted.follow and not wanted.review and not any(map(there, events)):
        say("waiting for the agent to be started")
        async for event in client.events(wanted.run, since=len(events)):
            events.append(event)
            if there(event):
                break
    return events


def _subject(run_folder: Path, events: list[Event], wanted: Wanted) -> Subject:
    from ..workflows.model.round.view import RoundView
    from .attempt_outputs import attempt, review
    from .selection import select
    from .views import refuse_foreign, view_of

    view = view_of(events)
    refuse_foreign(view, of_goal=wanted.of_goal, of_round=wanted.of_round)
    if isinstance(view, RoundView):
        return _round_subject(run_folder, events, view, wanted)
    if wanted.review:
        return review(run_folder, events, wanted.iteration)
    named = wanted.candidate is not None or wanted.iteration is not None
    key = None if named else _before_any(wanted.run, events)
    chosen = key or select(wanted.run, events, candidate=wanted.candidate, iteration=wanted.iteration)
    return attempt(run_folder, events, chosen)


def _round_subject(run_folder: Path, events: list[Event], view: RoundView, wanted: Wanted) -> Subject:
    from .round_outputs import round_subject

    return round_subject(
        run_folder, events, view, lane=wanted.lane, ticket=wanted.ticket, measurement=wanted.measurement
    )


def _before_any(run: str, events: list[Event]) -> AttemptKey | None:
    """The measurement of the unchanged tree, when the run ended before it started an attempt."""
    from ..workflows.model.attempt import AttemptKey
    from ..workflows.model.event import AttemptStarted, RunEnded

    ended = any(isinstance(event, RunEnded) for event in events)
    started = any(isinstance(event, AttemptStarted) for event in events)
    return AttemptKey(run=run, iteration=0, candidate=0, binding=0) if ended and not started else None


def _print_prompts(outputs: Outputs, printer: Printer, subject: Subject) -> None:
    from ..workflows.errors import RefusedError

    prompts = outputs.prompts()
    if not prompts:
        raise RefusedError(f"{subject} has no prompt: its agent was not launched", hint="orch logs without --prompt")
    for prompt in prompts:
        printer.end(prompt)


async def _follow(client: Client, events: list[Event], subject: Subject, outputs: Outputs, printer: Printer) -> None:
    """Print what is appended until nothing more can come; the events that tell so are added."""
    over = asyncio.create_task(_until_over(client, events, subject))
    while not over.done():
        grew = False
        for output in outputs.jobs():
            printer.end_if_over(output)
            grew = printer.more(output) or grew
        await asyncio.wait({over}, timeout=0 if grew else _POLL_S)
    await over


async def _until_over(client: Client, events: list[Event], subject: Subject) -> None:
    from .event_lines import event_line

    async for event in client.events(subject.key.run, since=len(events)):
        events.append(event)
        if subject.rests(event):
            say(event_line(event, events[0]))
        if subject.over(events):
            return
