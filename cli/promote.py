"""`orch promote` and `restore`: move the user's tree after a run has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import json_option, run_argument
from .session import ask
from .talk import clean, out, out_json, plural, say

if TYPE_CHECKING:
    from ..workflows.model.promotion import Promotion


@click.command()
@run_argument
@click.option("--to", default="worktree", show_default=True, metavar="TARGET", help="worktree or branch:NAME.")
@json_option
def promote(run: str, *, to: str, as_json: bool) -> None:
    """Bring a run's verified result to the working tree or to a branch, all or nothing."""
    from ..workflows.errors import RefusedError
    from ..workflows.model.promotion import PromoteMode
    from .plan import promote_target

    target = promote_target(to)
    if target.mode is PromoteMode.NONE:
        raise RefusedError("--to none promotes nothing", hint="write --to worktree or --to branch:NAME")
    _tell(ask(lambda client: client.promote(run, to=target)), "promoted to", as_json=as_json)


@click.command()
@run_argument
@json_option
def restore(run: str, *, as_json: bool) -> None:
    """Bring back the exact tree a run started from, uncommitted edits included."""
    _tell(ask(lambda client: client.restore(run)), "restored in", as_json=as_json)


def _tell(moved: Promotion, did: str, *, as_json: bool) -> None:
    from .reasons import sentence

    if as_json:
        out_json(moved)
    if moved.refused is not None:
        say(f"refused, nothing was touched: {sentence(moved.refused)}")
        say("hint: mend that and run it again; or bring the result to a branch: orch promote ID --to branch:NAME")
        raise SystemExit(ExitStatus.UNSUCCESSFUL)
    if not as_json:
        out(f"{did} {clean(str(moved.target))}: {plural(moved.paths, 'path')}, tree {(moved.tree or '')[:12]}")
