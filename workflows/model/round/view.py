"""What people see of a round: a projection of its ledger, the document of `orch show ID --json`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from ..base import Digest, Sha, Value
from ..reason import Reason, RunReason
from ..view import PromotedView, RunStatus, UsageView
from .campaign import RoundRecord
from .composition import StepResult
from .lane_view import LaneView, TicketView
from .plan import Gates, Metric, Name
from .ticket import TicketId
from .trial import Evaluation, Noise


class RoundPhase(StrEnum):
    """What a round is at."""

    PREPARING = "preparing"
    CALIBRATING = "calibrating"
    SEARCHING = "searching"
    COMPOSING = "composing"
    RECORDING = "recording"
    ENDED = "ended"


class DeviceState(StrEnum):
    """Where a device set is.

    `waiting`: it is busy with something else, or not as the plan says; the ticket is tried again. `paused`: the
    incumbent differs from itself there, and no ticket is measured until it does not.
    """

    IDLE = "idle"
    MEASURING = "measuring"
    WAITING = "waiting"
    PAUSED = "paused"


class QueueView(Value):
    """How many tickets wait, and whether none is measured because all device sets are paused, and why."""

    paused: bool = False
    why: str = ""
    length: int = 0


class DeviceView(Value):
    """One device set.

    Attributes:
        name: its name in the plan.
        state: where it is.
        ticket: what it measures now, none when that is the incumbent against itself, or what it waits with.
        ordinal: the number of that measurement.
        ahead: what is built for it.
        why: what it waits for, or why it is paused.
        noise: of one pair on it, by the A/A measurements that passed; None before there was one.
        measurements: how many it finished, those of A/A, composition and rerun included.
        held_s: seconds these held it.
        busy: the share of the time since the first ticket in which it was held; None before there was one.
    """

    name: Name
    state: DeviceState = DeviceState.IDLE
    ticket: str = ""
    ordinal: int = 0
    ahead: str = ""
    why: str = ""
    noise: Noise | None = None
    measurements: int = 0
    held_s: float = 0.0
    busy: float | None = None


class GuardView(Value):
    """The measurements of the incumbent against itself: how many, how many failed, and what the last one showed."""

    measured: int = 0
    failed: int = 0
    why: str = ""


class StepView(Value):
    """One step of the composition; `alone` is the gain of the lane's ticket by itself, in the evaluation's scale."""

    lane: Name
    ticket: TicketId
    base: Sha
    commit: Sha
    result: StepResult
    evaluation: Evaluation
    alone: float | None = None
    interaction: float | None = None
    interaction_log: float | None = None


class RerunView(Value):
    """A head measured anew, beside what had been promised for it: the best of many lucky measurements shows too much.

    Attributes:
        commit: what was measured.
        lanes: the lanes in it.
        fallback: whether it is the best single lane after the composed head had failed.
        evaluation: what it showed; this gain is unbiased.
        tickets: the gains of these lanes' tickets added up, in the evaluation's scale.
        steps: the gains of their steps added up.
    """

    commit: Sha
    lanes: tuple[Name, ...]
    fallback: bool = False
    evaluation: Evaluation
    tickets: float | None = None
    steps: float | None = None


class RoundView(Value):
    """The document of `orch show ID --json` for a round.

    Attributes:
        id: the run's id.
        kind: `round`.
        status: where the run is.
        reason: why it ended.
        phase: what it is at.
        campaign: the campaign's id.
        round: the round's id in the campaign.
        repo: the user's working tree.
        plan_digest: of the frozen plan.
        started_at: ISO 8601 UTC.
        ended_at: the same; None while it goes on.
        incumbent: the commit that all lanes start from.
        new_incumbent: the commit that takes its place; None when it stays, or while that is open.
        decided: whether it is known which of both.
        metric: what is measured.
        gates: what a measurement must show.
        sandbox: whether commands run in the sandbox; None before the host was prepared.
        noise: of one pair on the first device set; a gain is judged by that of the set it was measured on.
        guards: the measurements of the incumbent against itself.
        queue: the queue of tickets.
        devices: the device sets.
        lanes: the lanes, in the plan's order.
        rejects: how many tickets were rejected, by cause.
        steps: the composition, in order.
        reruns: the heads that were measured anew.
        chain: the commits of the new incumbent, one for each of its lanes, oldest first.
        promote: where a new incumbent goes.
        promoted: where it stands.
        record: where the round's ledger document lies.
        usage: of all agents.
        device_hours: hours that device sets were held.
        warnings: facts worth telling.
    """

    id: str
    kind: str = "round"
    status: RunStatus
    reason: Reason[RunReason] | None = None
    phase: RoundPhase = RoundPhase.PREPARING
    campaign: str = ""
    round: str = ""
    repo: str = ""
    plan_digest: Digest | None = None
    started_at: str = ""
    ended_at: str | None = None
    incumbent: Sha | None = None
    new_incumbent: Sha | None = None
    decided: bool = False
    metric: Metric | None = None
    gates: Gates | None = None
    sandbox: bool | None = None
    noise: Noise | None = None
    guards: GuardView = GuardView()
    queue: QueueView = QueueView()
    devices: tuple[DeviceView, ...] = ()
    lanes: tuple[LaneView, ...] = ()
    rejects: dict[str, int] = Field(default_factory=dict)
    steps: tuple[StepView, ...] = ()
    reruns: tuple[RerunView, ...] = ()
    chain: tuple[Sha, ...] = ()
    promote: str = ""
    promoted: PromotedView | None = None
    record: RoundRecord | None = None
    usage: UsageView = UsageView()
    device_hours: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def tickets(self) -> tuple[TicketView, ...]:
        """The tickets of all lanes, lane by lane."""
        return tuple(ticket for lane in self.lanes for ticket in lane.tickets)

    @property
    def composed(self) -> tuple[Name, ...]:
        """The lanes in the new incumbent, in the order of composition."""
        kept = {lane.id for lane in self.lanes if lane.kept}
        return tuple(step.lane for step in self.steps if step.lane in kept)

    @property
    def confirmed(self) -> Evaluation | None:
        """What the new incumbent showed when it was measured anew; None when there is none."""
        found = self.reruns[-1].evaluation if self.reruns and self.new_incumbent else None
        return found if found and found.passed else None
