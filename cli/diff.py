"""`orch diff`: the change of a run or of one candidate as a patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import run_argument
from .session import ask

if TYPE_CHECKING:
    from ..workflows.model.event import Event
    from ..workflows.model.round.view import RoundView
    from .client import Client


@click.command()
@run_argument
@click.option("--candidate", type=int, help="One candidate against its baseline [default: the whole result].")
@click.option("--iteration", type=int, help="Of which iteration [default: the newest].")
@click.option("--lane", metavar="LANE", help="Of a round: a lane's best ticket against the incumbent.")
@click.option("--ticket", metavar="TICKET", help="Of a round: one ticket against the incumbent.")
def diff(run: str, *, candidate: int | None, iteration: int | None, lane: str | None, ticket: str | None) -> None:
    """Print the change as a patch that `git apply` takes; of a round: from the old incumbent to the new one."""
    import asyncio

    async def patch(client: Client) -> bytes:
        from ..activities.store import Store
        from ..workflows.model.round.view import RoundView
        from .bring import outcome
        from .fetching import fetch_commit
        from .runs import all_events
        from .views import refuse_foreign, view_of

        events = await all_events(client.link, run)
        view, named = view_of(events), candidate is not None or iteration is not None
        refuse_foreign(view, of_goal=named, of_round=(lane is not None) + (ticket is not None))
        if isinstance(view, RoundView):
            store, old, new = _round_ends(view, events, lane, ticket)
            return await asyncio.to_thread(Store(client.home, store).diff, old, new)
        whole = await outcome(client.link, run)
        old, new = whole.start, whole.head
        if named:
            old, new = _ends(run, events, candidate, iteration)
        await asyncio.to_thread(fetch_commit, client.home, run, whole.store, new)
        return await asyncio.to_thread(Store(client.home, whole.store).diff, old, new)

    click.echo(ask(patch), nl=False)


def _round_ends(view: RoundView, events: list[Event], lane: str | None, ticket: str | None) -> tuple[str, str, str]:
    """The store, and the commits before and after."""
    from .round_selection import change_of, store_of

    return store_of(view.id, events), *change_of(view, lane, ticket)


def _ends(run: str, events: list[Event], candidate: int | None, iteration: int | None) -> tuple[str, str]:
    """The commits before and after one candidate's work."""
    from ..workflows.errors import RefusedError
    from ..workflows.model.event import IterationStarted
    from .selection import measured, select

    key = select(run, events, candidate=candidate, iteration=iteration)
    found = measured(events, key)
    if found is None or found.snapshot is None:
        raise RefusedError(
            f"candidate {key.candidate} of iteration {key.iteration} left no tree", hint=f"orch logs {run}"
        )
    start = next(e.commit for e in events if isinstance(e, IterationStarted) and e.ordinal == key.iteration)
    return start, found.snapshot.commit
