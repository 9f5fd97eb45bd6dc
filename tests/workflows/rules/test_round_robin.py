"""The lanes take turns."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.rules.round_robin import next_in_turn

LANES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("queued", "last", "expected"),
    [
        ([], None, None),
        ([], "a", None),
        ([("b", "b1")], None, "b1"),
        ([("a", "a1"), ("b", "b1")], None, "a1"),
        ([("a", "a1"), ("b", "b1")], "a", "b1"),
        ([("a", "a1"), ("a", "a2"), ("c", "c1")], "a", "c1"),
        ([("a", "a1"), ("a", "a2")], "a", "a1"),
        ([("a", "a1"), ("b", "b1")], "c", "a1"),
        ([("c", "c2"), ("c", "c1")], "b", "c2"),
        ([("a", "a1"), ("b", "b1")], "gone", "a1"),
    ],
)
def test_turn_goes_to_the_lane_after_the_last_one(
    queued: list[tuple[str, str]], last: str | None, expected: str | None
) -> None:
    assert next_in_turn(queued, LANES, last) == expected


@given(st.lists(st.integers(0, 6), min_size=3, max_size=3))
def test_no_lane_waits_for_more_than_one_ticket_of_each_other(counts: list[int]) -> None:
    queued = [(lane, f"{lane}{n}") for lane, count in zip(LANES, counts, strict=True) for n in range(count)]
    everything, last, served = [ticket for _, ticket in queued], None, []
    while ticket := next_in_turn(queued, LANES, last):
        last = ticket[0]
        served.append(ticket)
        queued.remove((last, ticket))
    assert sorted(served) == sorted(everything)
    for lane in LANES:
        own = [index for index, ticket in enumerate(served) if ticket[0] == lane]
        between = [served[a + 1 : b] for a, b in pairwise(own)]
        assert all(len(others) == len({ticket[0] for ticket in others}) for others in between)
