"""`orch gc`: collect what no live run needs, with sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import DURATION, json_option
from .session import ask
from .talk import out, out_json, plural

if TYPE_CHECKING:
    from .client import Client


@click.command()
@click.option("--older-than", type=DURATION, help="Also remove results of runs older than this, e.g. 30d.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be collected.")
@json_option
def gc(*, older_than: float | None, dry_run: bool, as_json: bool) -> None:
    """Collect what no live run needs, and say how much room it took."""
    import asyncio
    from functools import partial

    from ..activities.reaper import Collected, collect
    from ..worker.reaping import dead_runs

    async def work(client: Client) -> list[Collected]:
        dead = await dead_runs(await client.link.temporal(), client.home)
        return await asyncio.to_thread(partial(collect, client.home, dead, keep_s=older_than, dry_run=dry_run))

    found = ask(work)
    if as_json:
        out_json(found)
        return
    for item in found:
        out(f"{_size(item.bytes):>9}  {item.kind}  {item.path}")
    total = _size(sum(item.bytes for item in found))
    out(f"{'would collect' if dry_run else 'collected'} {plural(len(found), 'thing')}, {total}")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
