"""The ledger: typed, append-only events of one run; every view is a projection of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .attempt import AttemptKey
from .base import Sha, Value
from .budget import Caps
from .candidate import Candidate
from .contract import Contract
from .outcome import Outcome
from .promotion import PromoteTarget, Promotion
from .ranking import Ranking
from .reason import Reason, RunReason
from .review import Decision, Extension, Note, Review
from .usage import Usage
from .verdict import Verdict


class _Event(Value):
    """What all events have: their place in the ledger and their time (ISO 8601, UTC)."""

    seq: int = Field(ge=1)
    at: str


class RunStarted(_Event):
    """The run began."""

    type: Literal["run_started"] = "run_started"
    run: str
    kind: str = "goal"
    repo: str
    goal: str
    agents: tuple[str, ...]
    caps: Caps
    promote: PromoteTarget
    sign_off: str = ""


class BaselineTaken(_Event):
    """The user's tree was recorded in the store and the contract frozen."""

    type: Literal["baseline_taken"] = "baseline_taken"
    store: str
    commit: Sha
    tree: Sha
    parent: Sha | None
    dirty: bool
    contract: Contract
    contract_digest: str
    sandbox: bool
    warnings: tuple[str, ...] = ()


class BaselineMeasured(_Event):
    """The unchanged tree was measured first."""

    type: Literal["baseline_measured"] = "baseline_measured"
    verdict: Verdict


class SealRequested(_Event):
    """The run waits for an operator to approve the contract."""

    type: Literal["seal_requested"] = "seal_requested"
    contract_digest: str


class SealDecided(_Event):
    """An operator answered."""

    type: Literal["seal_decided"] = "seal_decided"
    decision: Decision


class IterationStarted(_Event):
    """Candidates were reserved and start from the head."""

    type: Literal["iteration_started"] = "iteration_started"
    ordinal: int
    commit: Sha
    tree: Sha
    attempts: tuple[AttemptKey, ...]


class AttemptStarted(_Event):
    """An attempt's workflow was started."""

    type: Literal["attempt_started"] = "attempt_started"
    attempt: AttemptKey
    agent: str


class AttemptWaiting(_Event):
    """An attempt rests until its agent's provider takes requests again."""

    type: Literal["attempt_waiting"] = "attempt_waiting"
    attempt: AttemptKey
    agent: str
    outcome: Outcome
    until: float


class AttemptResumed(_Event):
    """An attempt's rest is over: its agent is launched again."""

    type: Literal["attempt_resumed"] = "attempt_resumed"
    attempt: AttemptKey
    agent: str


class AttemptReplaced(_Event):
    """An attempt's host was lost: it stays charged with what it reported, and a new one begins in its place."""

    type: Literal["attempt_replaced"] = "attempt_replaced"
    lost: Candidate
    attempt: AttemptKey
    agent: str


class CandidateMeasured(_Event):
    """An attempt ended; its facts are durable from here on."""

    type: Literal["candidate_measured"] = "candidate_measured"
    candidate: Candidate


class IterationDecided(_Event):
    """The tournament chose; `commit` and `tree` are the head from here on."""

    type: Literal["iteration_decided"] = "iteration_decided"
    ordinal: int
    ranking: Ranking
    commit: Sha
    tree: Sha


class GateMeasured(_Event):
    """The head's tree was measured afresh by the canonical short-circuit."""

    type: Literal["gate_measured"] = "gate_measured"
    ordinal: int
    verdict: Verdict


class HeadReviewed(_Event):
    """The reviewer answered about the head's tree."""

    type: Literal["head_reviewed"] = "head_reviewed"
    ordinal: int
    tree: Sha
    review: Review


class NoteAdded(_Event):
    """An operator left guidance."""

    type: Literal["note_added"] = "note_added"
    note: Note


class RunExtended(_Event):
    """An operator raised a cap."""

    type: Literal["run_extended"] = "run_extended"
    extension: Extension


class RunPromoted(_Event):
    """The result was promoted, or the promotion was refused."""

    type: Literal["run_promoted"] = "run_promoted"
    promotion: Promotion


class RunEnded(_Event):
    """The run ended."""

    type: Literal["run_ended"] = "run_ended"
    status: Literal["succeeded", "failed", "cancelled"]
    reason: Reason[RunReason]
    usage: Usage = Usage()


Event = Annotated[
    RunStarted
    | BaselineTaken
    | BaselineMeasured
    | SealRequested
    | SealDecided
    | IterationStarted
    | AttemptStarted
    | AttemptWaiting
    | AttemptResumed
    | AttemptReplaced
    | CandidateMeasured
    | IterationDecided
    | GateMeasured
    | HeadReviewed
    | NoteAdded
    | RunExtended
    | RunPromoted
    | RunEnded,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads one line of a ledger."""


class LedgerPage(Value):
    """Events after `since`, and whether the run has ended."""

    events: tuple[Event, ...]
    ended: bool
