"""Whether a submission enters the queue."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.round.ticket import Cause, Submission


@dataclass(frozen=True)
class Desk:
    """What is known of a lane when a submission arrives.

    Attributes:
        distinct: manifests that the lane has submitted so far, whatever became of them; those over the cap aside.
        cap: how many it may submit.
        deadline: absolute Unix time of the lane.
        open: whether the round still takes submissions.
    """

    distinct: int
    cap: int
    deadline: float
    open: bool


def refusal(submission: Submission, desk: Desk, now: float) -> tuple[Cause, str] | None:
    """Why a new manifest is not queued, with the fact behind it; None when it is.

    Time and number come before what is wrong with the files: a lane that is over learns that it is over. The cap
    counts distinct manifests, those that intake refused among them, so that rubbish cannot be sent for ever.
    """
    if not desk.open:
        return Cause.ROUND_OVER, "the round takes no submissions any more"
    if now >= desk.deadline:
        return Cause.LANE_DEADLINE, f"{now - desk.deadline:.1f} s late"
    if desk.distinct >= desk.cap:
        return Cause.CAP, f"the lane may submit {desk.cap}"
    if submission.refused is not None:
        return submission.refused, submission.detail
    return None
