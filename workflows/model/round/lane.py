"""A lane at work: its bindings, and the requests and results of its steps on the host."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pydantic import Field

from ..attempt import AttemptKey
from ..base import Digest, Sha, Value
from ..budget import BindingState
from ..contract import Contract
from ..exit import Exit
from ..usage import Usage
from ..verdict import Excerpt
from .plan import LanePlan, Name, RoundPlan
from .ticket import Cause, TicketId


class LaneBinding(Value):
    """One attempt's right to spend: reserved, claimed by one executor, settled; never freed once claimed.

    Attributes:
        ordinal: from 1, by the lane's ledger: a restart cannot reset it.
        digest: SHA-256 over the canonical JSON of [round digest, lane, ordinal]: the binding's identity.
        tokens: the most it may use, the lane's cap less what is charged; None without a cap.
        usd: the same of US dollars.
        state: where it is in its life.
        usage: what it used; known once settled. A claimed one that never settles is charged its worst case.
    """

    ordinal: int = Field(ge=1)
    digest: Digest
    tokens: int | None = None
    usd: float | None = None
    state: BindingState = BindingState.RESERVED
    usage: Usage = Usage()


def binding_digest(round_digest: Digest, lane: Name, ordinal: int) -> Digest:
    """The identity of a lane's binding: bound to the frozen round, and another one for each ordinal."""
    text = json.dumps([round_digest, lane, ordinal], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class LaneLedger(Value):
    """All bindings of a lane, in order."""

    bindings: tuple[LaneBinding, ...] = ()


class LaneEnd(StrEnum):
    """Why a lane stopped."""

    DONE = "done"
    DEADLINE = "deadline"
    ATTEMPTS = "attempts_used"
    TOKENS = "tokens_used"
    USD = "usd_used"
    NOT_OPENED = "not_opened"
    AGENT_UNUSABLE = "agent_unusable"
    CANCELLED = "cancelled"
    BROKEN = "broken"


class OpenLane(Value):
    """Make a lane's workspace at the incumbent, put the wrapper into it, and see that the target resolves inside.

    Attributes:
        attempt: names the lane's folder; it holds a slot of the host until it is closed.
        store: the store's key.
        plan: the frozen plan.
        lane: which lane.
        contract: the set-up of the workspace, as attempts have it.
        sandbox: whether commands run in the sandbox.
        deadline: absolute Unix time of the lane.
    """

    attempt: AttemptKey
    store: str
    plan: RoundPlan
    lane: LanePlan
    contract: Contract
    sandbox: bool
    deadline: float


class LaneOpened(Value):
    """The lane's workspace, or why there is none.

    Attributes:
        path: absolute path on its host; None when the deadline passed before there was room.
        failed: set-up or probe, when one of them failed.
        exit: how that ended.
        detail: the fact behind it.
        output: what it printed.
        prompt: what the lane's agent is told.
    """

    path: str | None
    failed: Cause | None = None
    exit: Exit | None = None
    detail: str = ""
    output: Excerpt = Excerpt()
    prompt: str = ""


class TakeIn(Value):
    """Watch a lane's outbox: check each entry against the frozen plan, record it in the store, submit it to the round.

    What becomes of the tickets is mirrored into the lane while it watches.

    Attributes:
        attempt: names the lane's folder.
        store: the store's key.
        plan: the frozen plan; nothing in the lane is trusted.
        lane: the lane's id.
        deadline: absolute Unix time after which nothing is taken in any more; it is checked again by the round.
        once: look once at what is there, and end; else until it is cancelled.
    """

    attempt: AttemptKey
    store: str
    plan: RoundPlan
    lane: str
    deadline: float
    once: bool = False


class TakenIn(Value):
    """The tickets that were submitted by one activity, in order."""

    tickets: tuple[TicketId, ...] = ()


class TrialStep(Value):
    """A step of a trial: two commits measured against one another.

    Attributes:
        attempt: names the measurement's folder.
        store: the store's key.
        plan: the frozen plan.
        base: the commit of side A.
        candidate: the commit of side B; the same one for an A/A measurement.
        sandbox: whether commands run in the sandbox.
    """

    attempt: AttemptKey
    store: str
    plan: RoundPlan
    base: Sha
    candidate: Sha
    sandbox: bool


class BuildTrial(TrialStep):
    """Make fresh checkouts of both sides, set them up, build and smoke-test the candidate; no device is held."""


class Built(Value):
    """Whether both sides can be measured.

    Attributes:
        failed: at which step a side failed; None when both are ready.
        side: which side: `base` or `candidate`.
        detail: the fact behind it.
        output: what the failing step printed.
    """

    failed: Cause | None = None
    side: str = ""
    detail: str = Field(default="", max_length=500)
    output: Excerpt = Excerpt()


class MeasurePairs(TrialStep):
    """Lease a device set, and run the pairs of a trial that was built; its copies stay for the validator.

    Attributes:
        device: the name of the device set.
        patience_s: how long it waits for the device set before it reports that it is busy.
        deadline: absolute Unix time after which no further pair begins; what is complete by then is reported.
    """

    device: str
    patience_s: float = Field(default=30.0, ge=0)
    deadline: float | None = None


class ValidateOutputs(TrialStep):
    """Have the validator look at the outputs that it has not seen yet; no device is held, and the copies go."""


class ComposeStep(Value):
    """Lay a ticket's files on a head, as one commit whose message names ticket, lane, plane and evidence.

    Attributes:
        run: whose.
        store: the store's key.
        plan: the frozen plan.
        lane: the lane's id.
        ticket: its ticket.
        source: the ticket's commit: the incumbent with its files.
        head: what they are laid on.
    """

    run: str
    store: str
    plan: RoundPlan
    lane: str
    ticket: TicketId
    source: Sha
    head: Sha


class Composed(Value):
    """A commit of the chain, pinned by the run.

    Attributes:
        commit: its id; that of the head where the files cannot lie beside what is there.
        tree: its tree.
        clash: why they cannot; empty when they do.
    """

    commit: Sha
    tree: Sha
    clash: str = ""
