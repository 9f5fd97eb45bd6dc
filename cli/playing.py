"""Plays rounds of frozen plans one after the other: starts, attaches to what runs, reads what has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..workflows.model.event import Event
from ..workflows.model.round.plan import RoundPlan
from .listing import has_ended, read_ledger
from .talk import say

if TYPE_CHECKING:
    from ..activities.repository import Repository
    from .client import Client
    from .round_options import RoundOptions


@dataclass
class Player:
    """Plays a round and returns its whole ledger; played again, it gives the same one.

    Attributes:
        client: of the engine.
        options: where the repository is, and whether there is a sandbox; nothing is promoted.
        repository: the repository.
        last: the id of the last run.
    """

    client: Client
    options: RoundOptions
    repository: Repository
    last: str = field(default="", init=False)

    async def __call__(self, plan: RoundPlan) -> list[Event]:
        """Play one round. RefusedError when it cannot be started, or its id has another plan."""
        from .checked import CheckedRound
        from .round_start import RoundStart, request_of
        from .yaml_lines import Document

        request = request_of(plan, self.options, self.repository, self.client.home)
        self.last = request.run
        known = read_ledger(self.client.home, request.run)
        if has_ended(known):
            say(f"round {request.run} has ended already: nothing is measured, this is what it found then")
            return list(known)
        say(f"round {request.run}: orch watch {request.run}")
        await self.client.begin_round(RoundStart(request, CheckedRound(Document(plan.id)), plan))
        return [event async for event in self.client.events(request.run)]
