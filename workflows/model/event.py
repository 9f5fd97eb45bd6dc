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
from .recorded import Recorded
from .review import Decision, Extension, Note, Review
from .round.event import RoundEvent
from .usage import Usage
from .verdict import Verdict


class RunStarted(Recorded):
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


class BaselineTaken(Recorded):
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


class BaselineMeasured(Recorded):
    """The unchanged tree was measured first."""

    type: Literal["baseline_measured"] = "baseline_measured"
    verdict: Verdict


class SealRequested(Recorded):
    """The run waits for an operator to approve the contract."""

    type: Literal["seal_requested"] = "seal_requested"
    contract_digest: str


class SealDecided(Recorded):
    """An operator answered."""

    type: Literal["seal_decided"] = "seal_decided"
    decision: Decision


class IterationStarted(Recorded):
    """Candidates were reserved and start from the head."""

    type: Literal["iteration_started"] = "iteration_started"
    ordinal: int
    commit: Sha
    tree: Sha
    attempts: tuple[AttemptKey, ...]


class AttemptStarted(Recorded):
    """An attempt's workflow was started."""

    type: Literal["attempt_started"] = "attempt_started"
    attempt: AttemptKey
    agent: str


class AttemptWaiting(Recorded):
    """An attempt rests until its agent's provider takes requests again."""

    type: Literal["attempt_waiting"] = "attempt_waiting"
    attempt: AttemptKey
    agent: str
    outcome: Outcome
    until: float


class AttemptResumed(Recorded):
    """An attempt's rest is over: its agent is launched again."""

    type: Literal["attempt_resumed"] = "attempt_resumed"
    attempt: AttemptKey
    agent: str


class AttemptReplaced(Recorded):
    """An attempt's host was lost: it stays charged with what it reported, and a new one begins in its place."""

    type: Literal["attempt_replaced"] = "attempt_replaced"
    lost: Candidate
    attempt: AttemptKey
    agent: str


class CandidateMeasured(Recorded):
    """An attempt ended; its facts are durable from here on."""

    type: Literal["candidate_measured"] = "candidate_measured"
    candidate: Candidate


class IterationDecided(Recorded):
    """The tournament chose; `commit` and `tree` are the head from here on."""

    type: Literal["iteration_decided"] = "iteration_decided"
    ordinal: int
    ranking: Ranking
    commit: Sha
    tree: Sha


class GateMeasured(Recorded):
    """The head's tree was measured afresh by the canonical short-circuit."""

    type: Literal["gate_measured"] = "gate_measured"
    ordinal: int
    verdict: Verdict


class HeadReviewed(Recorded):
    """The reviewer answered about the head's tree."""

    type: Literal["head_reviewed"] = "head_reviewed"
    ordinal: int
    tree: Sha
    review: Review


class NoteAdded(Recorded):
    """An operator left guidance."""

    type: Literal["note_added"] = "note_added"
    note: Note


class RunExtended(Recorded):
    """An operator raised a cap."""

    type: Literal["run_extended"] = "run_extended"
    extension: Extension


class RunPromoted(Recorded):
    """The result was promoted, or the promotion was refused."""

    type: Literal["run_promoted"] = "run_promoted"
    promotion: Promotion


class RunEnded(Recorded):
    """The run ended."""

    type: Literal["run_ended"] = "run_ended"
    status: Literal["succeeded", "failed", "cancelled"]
    reason: Reason[RunReason]
    usage: Usage = Usage()


GoalEvent = (
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
    | RunEnded
)

Event = Annotated[GoalEvent | RoundEvent, Field(discriminator="type")]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads one line of a ledger."""


class LedgerPage(Value):
    """Events after `since`, and whether the run has ended."""

    events: tuple[Event, ...]
    ended: bool
