"""`orch gc`: collect what no live run needs, with sizes; nothing goes before somebody said so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import DURATION, SIZE, json_option
from .session import ask
from .talk import clean, out, out_json, plural, say, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..activities.collecting.found import Collected
    from ..activities.collecting.plan import Plan, Policy
    from .client import Client


@click.command()
@click.option(
    "--older-than", type=DURATION, help="Also what was not used for so long: results, stores, logs; e.g. 30d."
)
@click.option("--free", type=SIZE, help="Also what was not used longest, until so much of the disk is free; e.g. 20g.")
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-v", "--verbose", is_flag=True, help="Name each thing.")
@json_option
def gc(*, older_than: float | None, free: int | None, dry_run: bool, yes: bool, verbose: bool, as_json: bool) -> None:
    """Show what no live run needs, with the room it takes, and after a yes delete it.

    Without a terminal nothing is asked and nothing goes unless --yes is given. Exit status 1 when something that was
    to go is still there.
    """
    from ..activities.collecting.plan import Policy, carry_out

    plan = ask(lambda client: _look(client, Policy(older_s=older_than, free=free or 0)))
    foreseen = plan.foreseen()
    if not (as_json or yes):
        _table(foreseen, verbose=verbose, done=False)
    if dry_run or not (yes or _agreed(foreseen, as_json=as_json)):
        found, done = foreseen, False
    else:
        found, done = carry_out(plan), True
        if not as_json:
            _table(found, verbose=verbose, done=True)
    if as_json:
        out_json({"collected": done, "bytes": sum(item.bytes for item in found), "items": found})
    if any(item.flaw for item in found):
        raise SystemExit(ExitStatus.UNSUCCESSFUL)


async def _look(client: Client, policy: Policy) -> Plan:
    import asyncio

    from ..activities.collecting.plan import survey
    from ..worker.reaping import dead_runs

    dead = await dead_runs(await client.link.temporal(), client.home, pins=True)
    return await asyncio.to_thread(survey, client.home, dead, policy)


def _agreed(found: Sequence[Collected], *, as_json: bool) -> bool:
    if as_json or not found:
        return False
    if not sys.stdin.isatty():
        say("hint: nothing was deleted: give --yes to delete it")
        return False
    return click.confirm("delete it?", default=False, err=True)


def _table(found: Sequence[Collected], *, verbose: bool, done: bool) -> None:
    """One line a kind, or a thing; what did not go by its name and the reason; and the sum."""
    from ..activities.collecting.found import KINDS

    for kind, meaning in KINDS.items():
        items = [item for item in found if item.kind == kind]
        if items:
            out(f"{size(sum(item.bytes for item in items)):>9}  {len(items):>5,}  {kind:<9}  {meaning}")
        for item in items if verbose else ():
            out(f"{size(item.bytes):>9}         {clean(str(item.path))}")
    for item in found:
        if item.flaw:
            say(f"left there: {clean(str(item.path))}: {clean(item.flaw)}")
    gone = [item for item in found if not item.flaw]
    total = size(sum(item.bytes for item in found))
    out(f"{'collected' if done else 'would collect'} {plural(len(gone), 'thing')}, {total}")
