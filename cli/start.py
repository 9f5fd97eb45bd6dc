"""`orch start`: start a run and follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .goal_options import goal_options
from .params import json_option
from .session import ask, run_goes_on
from .talk import out, out_json, say, screen

if TYPE_CHECKING:
    from .client import Client
    from .round_start import RoundStart
    from .views import AnyView


@click.group()
def start() -> None:
    """Start a run and follow it to its end."""


@start.command("goal")
@goal_options
@click.option("--detach", is_flag=True, help="Return as soon as the run is started.")
@json_option
def start_goal(*, detach: bool, as_json: bool, **given: Any) -> None:
    """Let agents compete for the goal TEXT until the ladder passes.

    The result lands in the working tree uncommitted. Defaults may stand in `orch.yaml` at the repository's root.
    Exit status: 0 succeeded, 1 ended without success, 2 refused, 3 engine unreachable, 130 interrupted (the
    run goes on).
    """
    from ..worker.settings import load_settings
    from .options import GoalOptions
    from .plan import resolve_goal

    plan = resolve_goal(GoalOptions(**given), state=load_settings().home.root)
    for fact in plan.facts:
        say(fact)
    with run_goes_on(plan.request.run):
        _start(plan.request.run, lambda client: client.start(plan), detach=detach, as_json=as_json)


@start.command("round")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--repo", type=click.Path(path_type=Path), default=".", show_default=True, help="A folder of its repository."
)
@click.option(
    "--promote",
    default="none",
    show_default=True,
    metavar="TARGET",
    help="Where a new incumbent goes: none, worktree or branch:NAME.",
)
@click.option("--no-sandbox", "sandbox", flag_value=False, default=True, help="Do without the sandbox.")
@click.option("--priority", type=int, default=3, show_default=True, help="1 to 5: the smaller goes first.")
@click.option("--dry-run", is_flag=True, help="Show the plan and start nothing.")
@click.option("--detach", is_flag=True, help="Return as soon as the round is started.")
@json_option
def start_round(*, dry_run: bool, detach: bool, as_json: bool, **given: Any) -> None:
    """Run one optimization round of the round plan in the file PLAN.

    A round is started once: the very same plan again is attached to while it runs, a changed one is refused. The new
    incumbent is a chain of commits in the store; --promote brings it to a branch or to the working tree.
    """
    from ..worker.settings import load_settings
    from .round_options import RoundOptions
    from .round_start import resolve_round

    home = load_settings().home
    start = resolve_round(RoundOptions(**given), home)
    if dry_run:
        _show_round(start, as_json=as_json)
        return
    for line in (*start.checked.facts, *(f"warning: {warning}" for warning in start.checked.warnings)):
        say(line)
    with run_goes_on(start.request.run):
        _start(start.request.run, lambda client: client.begin_round(start), detach=detach, as_json=as_json)


def _show_round(start: RoundStart, *, as_json: bool) -> None:
    from .round_plan_lines import plan_lines

    said, warnings = start.checked.said, start.checked.warnings
    if as_json:
        out_json({"id": start.request.run, "digest": start.plan.digest, "plan": start.plan, "warnings": warnings})
        return
    sandbox = start.request.sandbox != "off"
    promote = str(start.request.promote)
    shown = plan_lines(start.plan, promote=promote, sandbox=sandbox, said=said, warnings=warnings, screen=screen())
    out("\n".join(shown))


def _start(run: str, starting: Callable[[Client], Awaitable[str]], *, detach: bool, as_json: bool) -> None:
    async def begin(client: Client) -> tuple[AnyView | None, str]:
        run = await starting(client)
        link = await client.link.page_of(run)
        say(f"started {run}" + (f"  {link}" if link else ""))
        from .follow import follow  # loaded while the run is on its way

        return (None if detach else await follow(client, run)), link

    view, link = ask(begin)
    if view is not None:
        from .follow import finish

        finish(view, as_json=as_json, link=link)
    elif as_json:
        out_json({"id": run, "web": link})
    else:
        out(run)
