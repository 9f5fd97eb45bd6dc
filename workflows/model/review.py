"""Sign-off: a reviewer that can only veto, and the operator's approval of the contract."""

from __future__ import annotations

from pydantic import Field

from .attempt import AttemptKey, SpendCaps
from .base import Sha, Value
from .contract import Contract
from .usage import Usage
from .verdict import Verdict


class ReviewHead(Value):
    """Ask a reviewer agent about the head's tree; it sees goal, diff and verdict between nonce fences.

    Attributes:
        attempt: names the folder of this review.
        agent: the reviewer's spec.
        store: the store's key.
        old: the commit the diff starts from (the run's baseline).
        new: the commit under review.
        contract: the frozen contract.
        verdict: the gate's verdict on `new`.
        deadline: absolute Unix time; a late answer is a veto. None without one.
        limit_s: wall seconds for the reviewer, all its launches together.
        sandbox: whether the reviewer runs in the sandbox.
        spend: what the run as a whole may spend.
    """

    attempt: AttemptKey
    agent: str
    store: str
    old: Sha
    new: Sha
    contract: Contract
    verdict: Verdict
    deadline: float | None
    limit_s: float
    sandbox: bool
    spend: SpendCaps = SpendCaps()


class Review(Value):
    """The reviewer's answer; anything unparseable, late or missing is a veto.

    Attributes:
        approved: True only for a parsed answer that does not veto.
        comment: its words (at most 2,000 characters), or why there is no answer.
        answered: whether there was a parseable answer at all.
        usage: what the review cost.
    """

    approved: bool
    comment: str = ""
    answered: bool = True
    usage: Usage = Usage()


class Decision(Value):
    """An operator's answer to a request for approval; silence is never approval."""

    approved: bool
    by: str = ""
    comment: str = Field(default="", max_length=2000)


class Note(Value):
    """Guidance for the next prompts."""

    text: str = Field(min_length=1, max_length=4000)
    by: str = ""


class Extension(Value):
    """Raise what a live run may use; None leaves a cap as it is.

    Attributes:
        max_iterations: the new cap, not an increment (so are all).
        candidates: attempts per iteration from the next iteration on.
        tokens: the new token cap.
        usd: the new money cap.
        deadline_s: seconds from the run's start.
    """

    max_iterations: int | None = Field(default=None, ge=1, le=1000)
    candidates: int | None = Field(default=None, ge=1, le=64)
    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    deadline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
