"""What is known of a lane: a fold of its events, so that a restarted round decides as an uninterrupted one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatchmethod

from .model.attempt import AttemptKey
from .model.base import Digest
from .model.event import Event
from .model.outcome import Outcome
from .model.round.event import (
    BindingCancelled,
    BindingClaimed,
    BindingReserved,
    BindingSettled,
    LaneEnded,
    LaneReady,
    LaneStarted,
)
from .model.round.lane import LaneEnd, LaneLedger, LaneOpened
from .model.round.plan import LanePlan
from .model.usage import Usage
from .rules import lane_budget


@dataclass
class LaneState:
    """One lane of a round; changed only by `apply`, with the events that name it.

    Attributes:
        plan: the lane in the frozen plan.
        round_digest: the digest of that plan.
        attempt: names the lane's folder; None before the lane began.
        deadline: absolute Unix time.
        opened: its workspace, or why there is none.
        ledger: its bindings.
        outcome: what became of its last launch.
        end: why it stopped; None while it goes on.
        detail: the fact behind that.
    """

    plan: LanePlan
    round_digest: Digest
    attempt: AttemptKey | None = None
    deadline: float = 0.0
    opened: LaneOpened | None = None
    ledger: LaneLedger = field(default_factory=LaneLedger)
    outcome: Outcome | None = None
    end: LaneEnd | None = None
    detail: str = ""

    @property
    def usage(self) -> Usage:
        """What its agents reported to have used."""
        return lane_budget.used(self.ledger)

    @singledispatchmethod
    def apply(self, event: Event) -> None:
        """Fold one event in; events that are no lane's change nothing."""

    @apply.register
    def _started(self, event: LaneStarted) -> None:
        self.attempt, self.deadline = event.attempt, event.deadline

    @apply.register
    def _ready(self, event: LaneReady) -> None:
        self.opened = event.opened

    @apply.register
    def _reserved(self, event: BindingReserved) -> None:
        self.ledger = lane_budget.reserve(self.ledger, self.plan, self.round_digest, event.binding)

    @apply.register
    def _claimed(self, event: BindingClaimed) -> None:
        self.ledger = lane_budget.claim(self.ledger, event.ordinal)

    @apply.register
    def _settled(self, event: BindingSettled) -> None:
        self.ledger = lane_budget.settle(self.ledger, event.ordinal, event.usage)
        self.outcome = event.outcome

    @apply.register
    def _cancelled(self, event: BindingCancelled) -> None:
        self.ledger = lane_budget.cancel(self.ledger, event.ordinal)

    @apply.register
    def _ended(self, event: LaneEnded) -> None:
        self.end, self.detail = event.end, event.detail
