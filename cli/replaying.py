"""The replay of a finished round without its agents: how long the queue of measurements alone takes. Pure.

The agents' places are taken by shell lines that put each recorded commit into the workspace and submit it, as fast as
they can. That is a bound on measuring, not a policy: no agent reads a result, nothing is reordered, nothing is thought.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from ..workflows.errors import RefusedError
from ..workflows.model.base import Value
from ..workflows.model.event import Event
from ..workflows.model.round.event import RoundDecided, RoundStarted, TicketMeasured, TicketQueued
from ..workflows.model.round.plan import LaneBudget, LanePlan, RoundPlan

LABEL = "measurement-queue bound, not a policy"

MAX_CAMPAIGN = 33
"""The longest id of a campaign whose replay has room for the whole of it."""


class Queue(Value):
    """What a round's queue of measurements took.

    Attributes:
        run: the round.
        tickets: how many were measured.
        span_s: seconds from the first ticket in the queue to the last verdict.
        held_s: seconds that devices were held for them.
        idle: the share of that span in which the devices were not held.
    """

    run: str
    tickets: int
    span_s: float
    held_s: float
    idle: float


class Replay(Value):
    """A round's queue and that of its replay."""

    label: str = LABEL
    recorded: Queue
    replayed: Queue


def replay_of(run: str, ledger: Sequence[Event]) -> RoundPlan:
    """The plan of the replay: the same round, of a copy of the campaign, with lanes that only submit.

    Raises:
        RefusedError: the run is no round, has not ended, or queued nothing.
    """
    began = next((event for event in ledger if isinstance(event, RoundStarted)), None)
    if began is None or not any(isinstance(event, RoundDecided) for event in ledger):
        raise RefusedError(f"{run} is no round that was decided", hint="replay a round that has ended")
    commits = submitted(ledger)
    if not commits:
        raise RefusedError(f"no ticket of {run} was ever in the queue", hint="there is nothing to replay")
    plan = began.plan
    lanes = [_lane(lane, commits[lane.id]) for lane in plan.lanes if lane.id in commits]
    changed = {"campaign": f"{_short(plan.campaign)}-replay", "lanes": lanes}
    return RoundPlan.model_validate({**plan.model_dump(), **changed})


def _short(campaign: str) -> str:
    """The id of a campaign, or as much of it as has room, with a hash of the whole: no other is cut to that."""
    if len(campaign) <= MAX_CAMPAIGN:
        return campaign
    digest = hashlib.sha256(campaign.encode()).hexdigest()[:8]
    return f"{campaign[: MAX_CAMPAIGN - len(digest) - 1]}-{digest}"


def queue_of(run: str, ledger: Sequence[Event]) -> Queue:
    """What a round's queue took, by its ledger."""
    queued = [event.time for event in ledger if isinstance(event, TicketQueued)]
    measured = [event for event in ledger if isinstance(event, TicketMeasured)]
    began = next((event for event in ledger if isinstance(event, RoundStarted)), None)
    devices = len(began.plan.devices) if began else 1
    span = max((event.time for event in measured), default=0.0) - min(queued, default=0.0)
    held = sum(event.measurement.held_s for event in measured)
    return Queue(
        run=run,
        tickets=len(measured),
        span_s=span if measured else 0.0,
        held_s=held,
        idle=max(0.0, 1 - held / (span * devices)) if measured and span > 0 else 0.0,
    )


def submitted(ledger: Sequence[Event]) -> dict[str, list[str]]:
    """The recorded commits of every lane, in the order in which they were queued."""
    found: dict[str, list[str]] = {}
    for event in ledger:
        if isinstance(event, TicketQueued) and event.submission.commit:
            found.setdefault(event.submission.lane, []).append(event.submission.commit)
    return found


def _lane(lane: LanePlan, commits: Sequence[str]) -> LanePlan:
    """A lane that submits these commits, which its workspace finds among the store's shared objects."""
    line = f"for c in {shlex.join(commits)}; do git read-tree --reset -u $c && .orch/round submit || exit 1; done"
    wall = max(lane.budget.wall_s, 600.0)
    return lane.model_copy(update={"agent": f"cmd:{line}", "budget": LaneBudget(wall_s=wall), "condition": "replay"})
