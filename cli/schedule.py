"""`orch schedule`: nightly work, on Temporal Schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .goal_options import goal_options
from .params import DURATION, json_option
from .session import ask
from .talk import out, out_json, say

if TYPE_CHECKING:
    from .schedules import ScheduleRow, Timing

_OVERLAPS = ("skip", "buffer-one", "buffer-all", "cancel-other", "terminate-other", "allow-all")

_NAME = click.argument("name", metavar="ID")


@click.group()
def schedule() -> None:
    """Manage runs that start by themselves."""


@schedule.group()
def create() -> None:
    """Create a schedule for a run of any kind."""


@create.command("goal")
@click.option("--cron", multiple=True, metavar="LINE", help="When, as a cron line, e.g. '0 2 * * *'. Repeatable.")
@click.option("--every", "every_s", type=DURATION, help="When, as an interval, e.g. 12h; instead of --cron.")
@click.option(
    "--time-zone", default="UTC", show_default=True, help="The time zone of the cron lines, e.g. Europe/Paris."
)
@click.option(
    "--overlap", type=click.Choice(_OVERLAPS), default="skip", show_default=True, help="When the last run still runs."
)
@click.option(
    "--catchup",
    "catchup_s",
    type=DURATION,
    default=3600.0,
    help="Make up for runs missed by less than this [default: 1h].",
)
@click.option(
    "--pause-on-failure/--no-pause-on-failure",
    default=True,
    show_default=True,
    help="Rest after a run without success.",
)
@click.option("--jitter", "jitter_s", type=DURATION, help="A random delay of at most this.")
@goal_options
@json_option
def create_goal(*, as_json: bool, **given: Any) -> None:
    """Start a goal run again and again; each run has an id of its own.

    The options are those of `start goal`; --id names the schedule.
    """
    from ..worker.settings import load_settings
    from .options import GoalOptions
    from .plan import resolve_goal
    from .schedules import Timing
    from .schedules import create as create_schedule

    timing = _timing(Timing(**{name: given.pop(name) for name in Timing.model_fields}))
    plan = resolve_goal(GoalOptions(**given), state=load_settings().home.root)
    name, request = plan.request.run, plan.request.model_copy(update={"ref": given["ref"]})  # each run asks anew
    for fact in plan.facts:
        say(fact)
    ask(lambda client: create_schedule(client.link, name, request, timing))
    if as_json:
        out_json({"id": name})
    else:
        out(name)
        say(f"next: orch schedule show {name}")


def _timing(timing: Timing) -> Timing:
    """Refuse a schedule that would never act, or in an unknown time zone."""
    from zoneinfo import available_timezones

    from ..workflows.errors import RefusedError
    from .nearest import nearest

    if bool(timing.cron) == (timing.every_s is not None):
        both = "--cron and --every contradict each other" if timing.cron else "no time: the schedule would never act"
        raise RefusedError(both, hint="give --cron '0 2 * * *' or --every 12h")
    zones = available_timezones()
    if timing.time_zone not in zones:
        close = nearest(timing.time_zone, zones)
        hint = f"did you mean {close}?" if close else "write an IANA name such as Europe/Paris"
        raise RefusedError(f"unknown time zone {timing.time_zone}", hint=hint)
    return timing


@schedule.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List all schedules."""
    from .client import Client
    from .render import columns
    from .schedules import list_schedules, show

    async def look(client: Client) -> list[ScheduleRow]:
        return [await show(client.link, name) for name in await list_schedules(client.link)]

    rows = ask(look)
    if as_json:
        out_json(rows)
    elif rows:
        out("\n".join(columns([("id", "state", "next", "runs", "goal"), *(_cells(row) for row in rows)])))
    else:
        out("no schedules yet\nnext: orch schedule create goal TEXT --cron '0 2 * * *' --verify CMD --agent SPEC")


def _cells(row: ScheduleRow) -> tuple[str, ...]:
    state = "paused" if row.paused else "active"
    return row.id, state, row.next_at.isoformat(timespec="minutes") if row.next_at else "-", str(row.runs), row.goal


@schedule.command("show")
@_NAME
@json_option
def show_(name: str, *, as_json: bool) -> None:
    """Show when a schedule acts next and what it started last."""
    from .schedules import show

    row = ask(lambda client: show(client.link, name))
    if as_json:
        out_json(row)
        return
    for field, value in row.model_dump(mode="json").items():
        if value not in (None, "", []):
            out(f"{field.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    if row.paused:
        say(f"next: orch schedule resume {name}")


@schedule.command("pause")
@_NAME
@click.option("--note", default="", help="Why.")
def pause_(name: str, *, note: str) -> None:
    """Let a schedule rest."""
    from .schedules import pause

    ask(lambda client: pause(client.link, name, note))
    say(f"paused\nnext: orch schedule resume {name}")


@schedule.command("resume")
@_NAME
@click.option("--note", default="", help="Why.")
def resume_(name: str, *, note: str) -> None:
    """Let a schedule act again."""
    from .schedules import resume

    ask(lambda client: resume(client.link, name, note))
    say(f"resumed\nnext: orch schedule show {name}")


@schedule.command("run")
@_NAME
def run_(name: str) -> None:
    """Start the schedule's run now, by its overlap policy."""
    from .schedules import run_now

    ask(lambda client: run_now(client.link, name))
    say("asked to run now\nnext: orch list")


@schedule.command("delete")
@_NAME
def delete_(name: str) -> None:
    """Forget a schedule; runs it started go on."""
    from .schedules import delete

    ask(lambda client: delete(client.link, name))
    say("deleted")
