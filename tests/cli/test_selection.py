"""Which attempt is meant: by number, else the winner's, else the latest."""

from __future__ import annotations

from typing import Any

import pytest

from orch.cli.selection import select
from orch.workflows.errors import RefusedError
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.event import AttemptStarted, Event, IterationDecided
from orch.workflows.model.ranking import Ranking, Standing
from orch.workflows.model.reason import CandidateReason, Reason

SHA = "0" * 40


def key(iteration: int, candidate: int, binding: int) -> AttemptKey:
    return AttemptKey(run="r", iteration=iteration, candidate=candidate, binding=binding)


def started(*keys: AttemptKey) -> list[Event]:
    return [AttemptStarted(seq=1, at="t", attempt=each, agent="cmd:x") for each in keys]


def decided(ordinal: int, winner: int) -> Event:
    order = (Standing(index=winner, reason=Reason(code=CandidateReason.WON)),)
    ranking = Ranking(order=order, decided_by="only")
    return IterationDecided(seq=1, at="t", ordinal=ordinal, ranking=ranking, commit=SHA, tree=SHA)


FIRST = started(key(1, 1, 1), key(1, 2, 2))
AGAIN = started(key(1, 2, 3))
SECOND = started(key(2, 1, 4), key(2, 2, 5))


@pytest.mark.parametrize(
    ("events", "wanted", "expected"),
    [
        (FIRST, {}, key(1, 2, 2)),
        ([*FIRST, decided(1, 1)], {}, key(1, 1, 1)),
        ([*FIRST, decided(1, 0)], {}, key(1, 2, 2)),
        ([*FIRST, decided(1, 1), *SECOND], {}, key(1, 1, 1)),
        ([*FIRST, decided(1, 1), *SECOND, decided(2, 0)], {}, key(1, 1, 1)),
        ([*FIRST, decided(1, 1), *SECOND, decided(2, 2)], {}, key(2, 2, 5)),
        ([*FIRST, decided(1, 1), *SECOND], {"candidate": 1}, key(2, 1, 4)),
        ([*FIRST, decided(1, 1), *SECOND], {"iteration": 1, "candidate": 2}, key(1, 2, 2)),
        ([*FIRST, *AGAIN], {"candidate": 2}, key(1, 2, 3)),
    ],
)
def test_attempt_is_selected(events: list[Event], wanted: dict[str, Any], expected: AttemptKey) -> None:
    assert select("r", events, **wanted) == expected


@pytest.mark.parametrize(
    ("events", "wanted", "message"),
    [
        ([], {}, "no attempt"),
        (FIRST, {"iteration": 9}, "no iteration 9"),
        (FIRST, {"candidate": 9}, "no candidate 9"),
    ],
)
def test_what_is_not_there_is_refused(events: list[Event], wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        select("r", events, **wanted)
