"""The rounds of one campaign in the order in which they began. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..workflows.model.event import Event
from ..workflows.model.round.view import RoundView
from ..workflows.rules.round_projection import project_round


def in_order(view: RoundView, ledgers: Iterable[Sequence[Event]]) -> list[RoundView]:
    """This round among the others of its campaign, by their ledgers."""
    others = [other for other in map(project_round, ledgers) if other.campaign == view.campaign and other.id != view.id]
    return sorted([*others, view], key=lambda one: one.started_at)
