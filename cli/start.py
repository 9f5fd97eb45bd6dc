"""`orch start`: start a run and follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .goal_options import goal_options
from .params import json_option
from .session import ask, run_goes_on
from .talk import out, out_json, say

if TYPE_CHECKING:
    from .client import Client
    from .plan import GoalPlan
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
        _start(plan, detach=detach, as_json=as_json)


def _start(plan: GoalPlan, *, detach: bool, as_json: bool) -> None:
    async def begin(client: Client) -> tuple[AnyView | None, str]:
        run = await client.start(plan)
        link = await client.link.page_of(run)
        say(f"started {run}" + (f"  {link}" if link else ""))
        from .follow import follow  # loaded while the run is on its way

        return (None if detach else await follow(client, run)), link

    view, link = ask(begin)
    if view is not None:
        from .follow import finish

        finish(view, as_json=as_json, link=link)
    elif as_json:
        out_json({"id": plan.request.run, "web": link})
    else:
        out(plan.request.run)
