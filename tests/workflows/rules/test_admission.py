"""Which submissions enter the queue."""

from __future__ import annotations

import pytest

from orch.workflows.model.round.ticket import Cause, Submission
from orch.workflows.rules.admission import Desk, refusal

GOOD = Submission(ticket="r1-a-00000000", lane="a", digest="0" * 64, commit="1" * 40, tree="2" * 40)
FOREIGN = GOOD.model_copy(update={"commit": None, "tree": None, "refused": Cause.OUT_OF_SCOPE, "detail": "x.py"})
OPEN = Desk(distinct=0, cap=2, deadline=100.0, open=True)


@pytest.mark.parametrize(
    ("submission", "desk", "now", "cause"),
    [
        (GOOD, OPEN, 0.0, None),
        (GOOD, Desk(1, 2, 100.0, open=True), 99.9, None),
        (GOOD, Desk(2, 2, 100.0, open=True), 0.0, Cause.CAP),
        (GOOD, OPEN, 100.0, Cause.LANE_DEADLINE),
        (GOOD, Desk(0, 2, 100.0, open=False), 0.0, Cause.ROUND_OVER),
        (FOREIGN, OPEN, 0.0, Cause.OUT_OF_SCOPE),
        (FOREIGN, Desk(2, 2, 100.0, open=True), 0.0, Cause.CAP),
        (FOREIGN, OPEN, 101.0, Cause.LANE_DEADLINE),
    ],
)
def test_time_and_number_come_before_what_is_wrong_with_the_files(
    submission: Submission, desk: Desk, now: float, cause: Cause | None
) -> None:
    found = refusal(submission, desk, now)
    assert (found[0] if found else None) == cause
