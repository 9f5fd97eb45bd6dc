"""Which ticket is measured next: the lanes take turns, so that one that submits often cannot starve the others."""

from __future__ import annotations

from collections.abc import Sequence


def next_in_turn(queued: Sequence[tuple[str, str]], lanes: Sequence[str], last: str | None) -> str | None:
    """The next ticket of `queued`, pairs of (lane, ticket) in order of arrival; None when there is none.

    The turn goes through `lanes` in the plan's order, beginning after the lane that was served last; a lane's own
    tickets keep their order.
    """
    start = lanes.index(last) + 1 if last in lanes else 0
    for lane in (*lanes[start:], *lanes[:start]):
        for owner, ticket in queued:
            if owner == lane:
                return ticket
    return None
