"""The options of a goal run on the command line, shared by `start goal` and `schedule create goal`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .params import DURATION

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)

_OPTIONS = (
    click.argument("goal", metavar="[TEXT]", default=""),
    click.option("--goal-file", type=_FILE, help="Read the goal from a text file."),
    click.option(
        "--repo", default=".", show_default=True, help="A folder of the git repository to work on, or a URL of one."
    ),
    click.option("--ref", default="", metavar="NAME", help="Of a URL: branch, tag or full commit id [default: HEAD]."),
    click.option(
        "--verify", multiple=True, metavar="CMD", help="A rung: a shell line that passes on exit 0. Repeatable."
    ),
    click.option("--contract", type=_FILE, help="A YAML contract instead of --verify."),
    click.option(
        "-n", "--candidates", type=int, help="Competing attempts per iteration, 1 to 64 [default: one per --agent]."
    ),
    click.option("--best-of", type=int, help="Another spelling of --candidates."),
    click.option(
        "--agent",
        multiple=True,
        metavar="SPEC",
        help="An agent: NAME[:MODEL][,KEY=VALUE…] or 'cmd:SHELL'. Repeatable, to mix agents; see `orch agents`.",
    ),
    click.option("--max-iterations", type=int, help="Iterations before the run gives up [default: 10]."),
    click.option("--budget-tokens", type=int, help="Tokens of all attempts together."),
    click.option("--budget-usd", type=float, help="US dollars of all attempts together."),
    click.option("--deadline", type=DURATION, help="Time for the whole run, e.g. 2h."),
    click.option("--attempt-timeout", type=DURATION, help="Time for one agent process [default: 1h]."),
    click.option("--rung-timeout", type=DURATION, help="Time for each rung [default: 10m]."),
    click.option(
        "--protect",
        multiple=True,
        metavar="GLOB",
        help="Paths that no candidate may change: globs, =GLOB (may add), !GLOB (opens), or auto: what the ladder's "
        "tools load by themselves [default: auto]. Repeatable.",
    ),
    click.option("--setup", default="", metavar="CMD", help="A shell line run once per workspace, before the agent."),
    click.option(
        "--carry", multiple=True, metavar="GLOB", help="Ignored paths every workspace gets, e.g. .venv. Repeatable."
    ),
    click.option(
        "--secret",
        multiple=True,
        metavar="NAME=REF",
        help="A variable for agents, by reference: NAME=env:VARIABLE or NAME='cmd:SHELL LINE'. Repeatable.",
    ),
    click.option(
        "--sandbox/--no-sandbox", default=None, help="Require the sandbox, or do without [default: where it works]."
    ),
    click.option("--sign-off", default="", metavar="AGENT", help="A reviewer agent that may veto the result."),
    click.option("--seal", is_flag=True, default=None, help="Wait for `orch approve` before any agent starts."),
    click.option(
        "--session",
        default="",
        metavar="MODE",
        help="continue, fork or fresh: what becomes of the winner's conversation [default: continue].",
    ),
    click.option("--prompt-template", type=_FILE, help="A text with {{goal}}, {{checks}}, {{feedback}} … for agents."),
    click.option(
        "--exchange",
        default="",
        metavar="URL",
        envvar="ORCH_EXCHANGE",
        help="An artifact store, file:///… or s3://…: attempts may then go to every host of the engine that has room.",
    ),
    click.option("--needs", multiple=True, metavar="LABEL", help="What a host must have, e.g. gpu. Repeatable."),
    click.option("--priority", type=int, help="1 to 5: of runs that wait for one host, the smaller goes first."),
    click.option(
        "--promote",
        default="",
        metavar="TARGET",
        help="worktree, branch:NAME or none [default: worktree; none for a URL].",
    ),
    click.option("--id", default="", metavar="ID", help="The id [default: made from the goal]."),
)


def goal_options(command: F) -> F:
    """Add all options of a goal run; they arrive under the names of GoalOptions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
