"""The events of a round's ledger, beside those that every run has."""

from __future__ import annotations

from typing import Literal

from ..attempt import AttemptKey
from ..base import Digest, Sha
from ..exit import Exit
from ..outcome import Outcome
from ..promotion import PromoteTarget
from ..recorded import Recorded
from ..usage import Usage
from .campaign import RoundRecord
from .composition import Pick, Rerun, Step
from .lane import LaneBinding, LaneEnd, LaneOpened
from .plan import Name, RoundPlan
from .ticket import Cause, Submission, TicketId
from .trial import Evaluation, GuardResult, Measurement, Noise


class RoundStarted(Recorded):
    """The round began."""

    type: Literal["round_started"] = "round_started"
    run: str
    kind: str = "round"
    repo: str
    plan: RoundPlan
    plan_digest: Digest
    promote: PromoteTarget


class RoundReady(Recorded):
    """The host checked everything and holds the incumbent."""

    type: Literal["round_ready"] = "round_ready"
    store: str
    incumbent: Sha
    tree: Sha
    baseline: Sha | None
    sandbox: bool
    warnings: tuple[str, ...] = ()


class GuardMeasured(Recorded):
    """The incumbent was measured against itself on a device set: at first, and again after every k tickets of it.

    `noise` pools all A/A pairs of that set that passed so far; sigma of every evaluation there comes from it.
    """

    type: Literal["guard_measured"] = "guard_measured"
    measurement: Measurement
    result: GuardResult
    noise: Noise | None


class QueuePaused(Recorded):
    """A device set measures nothing else until an A/A measurement on it passes again."""

    type: Literal["queue_paused"] = "queue_paused"
    device: Name
    why: str


class QueueResumed(Recorded):
    """A device set measures tickets again."""

    type: Literal["queue_resumed"] = "queue_resumed"
    device: Name


class LaneStarted(Recorded):
    """A lane's workspace is being opened."""

    type: Literal["lane_started"] = "lane_started"
    lane: Name
    attempt: AttemptKey
    deadline: float


class LaneReady(Recorded):
    """A lane's workspace stands, or could not be had."""

    type: Literal["lane_ready"] = "lane_ready"
    lane: Name
    opened: LaneOpened


class BindingReserved(Recorded):
    """An attempt's budget was reserved."""

    type: Literal["binding_reserved"] = "binding_reserved"
    lane: Name
    binding: LaneBinding


class BindingClaimed(Recorded):
    """An attempt is about to be launched, and charged from here on."""

    type: Literal["binding_claimed"] = "binding_claimed"
    lane: Name
    ordinal: int


class BindingSettled(Recorded):
    """An attempt ended, with what it used."""

    type: Literal["binding_settled"] = "binding_settled"
    lane: Name
    ordinal: int
    usage: Usage
    exit: Exit
    outcome: Outcome
    message: str = ""


class BindingCancelled(Recorded):
    """A reserved attempt was not launched."""

    type: Literal["binding_cancelled"] = "binding_cancelled"
    lane: Name
    ordinal: int
    why: str


class LaneWaiting(Recorded):
    """A lane rests until its agent's provider takes requests again (`until`: Unix time)."""

    type: Literal["lane_waiting"] = "lane_waiting"
    lane: Name
    outcome: Outcome
    until: float


class LaneResumed(Recorded):
    """A lane's rest is over."""

    type: Literal["lane_resumed"] = "lane_resumed"
    lane: Name


class LaneEnded(Recorded):
    """A lane stopped; its tickets may still be in the queue."""

    type: Literal["lane_ended"] = "lane_ended"
    lane: Name
    end: LaneEnd
    detail: str = ""


class TicketQueued(Recorded):
    """A submission was accepted."""

    type: Literal["ticket_queued"] = "ticket_queued"
    submission: Submission


class TicketRejected(Recorded):
    """A submission was refused, by intake, by the plan's limits, or because it does not build.

    `submission` is there when it was never queued.
    """

    type: Literal["ticket_rejected"] = "ticket_rejected"
    ticket: TicketId
    lane: Name
    cause: Cause
    detail: str = ""
    submission: Submission | None = None


class TicketTaken(Recorded):
    """A ticket left the queue for a device set; with `measurement` its ordinal, from 1."""

    type: Literal["ticket_taken"] = "ticket_taken"
    ticket: TicketId
    device: Name
    measurement: int


class DeviceTurned(Recorded):
    """What a device set is at from here on: a ticket, the incumbent against itself (no ticket), or nothing.

    `measurement` is the ordinal of the measurement, 0 for nothing.
    """

    type: Literal["device_turned"] = "device_turned"
    device: Name
    ticket: TicketId | None = None
    measurement: int = 0


class TicketPutBack(Recorded):
    """The device set was busy or not as the plan says: the ticket is in the queue again, in its old place."""

    type: Literal["ticket_put_back"] = "ticket_put_back"
    ticket: TicketId
    device: Name
    why: str


class TicketMeasured(Recorded):
    """A ticket has its verdict; its facts are durable from here on."""

    type: Literal["ticket_measured"] = "ticket_measured"
    ticket: TicketId
    lane: Name
    measurement: Measurement
    evaluation: Evaluation


class PicksMade(Recorded):
    """The lanes' best tickets, in the order in which they are composed."""

    type: Literal["picks_made"] = "picks_made"
    picks: tuple[Pick, ...]


class StepComposed(Recorded):
    """A lane was laid on the head and measured against the head before; the first one was measured already."""

    type: Literal["step_composed"] = "step_composed"
    step: Step
    tree: Sha | None = None
    measurement: Measurement | None = None


class HeadRerun(Recorded):
    """A head was measured once more against the incumbent."""

    type: Literal["head_rerun"] = "head_rerun"
    rerun: Rerun
    measurement: Measurement


class RoundDecided(Recorded):
    """The new incumbent, or none when the old one stays; `lanes` are in it, `chain` one commit for each."""

    type: Literal["round_decided"] = "round_decided"
    incumbent: Sha | None
    tree: Sha | None
    lanes: tuple[Name, ...] = ()
    chain: tuple[Sha, ...] = ()


class RoundRecorded(Recorded):
    """The ledger document was written and the campaign's record advanced."""

    type: Literal["round_recorded"] = "round_recorded"
    record: RoundRecord


RoundEvent = (
    RoundStarted
    | RoundReady
    | GuardMeasured
    | QueuePaused
    | QueueResumed
    | LaneStarted
    | LaneReady
    | BindingReserved
    | BindingClaimed
    | BindingSettled
    | BindingCancelled
    | LaneWaiting
    | LaneResumed
    | LaneEnded
    | TicketQueued
    | TicketRejected
    | TicketTaken
    | DeviceTurned
    | TicketPutBack
    | TicketMeasured
    | PicksMade
    | StepComposed
    | HeadRerun
    | RoundDecided
    | RoundRecorded
)
