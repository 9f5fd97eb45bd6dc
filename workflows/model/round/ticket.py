"""A ticket: one distinct set of files that a lane submitted, and what became of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from ..base import Digest, Sha, Value
from .plan import Name

TicketId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,99}$")]
"""`ROUND-LANE-XXXXXXXX`, the last part being the first digits of the manifest's digest."""


class Cause(StrEnum):
    """Why a ticket was rejected."""

    MALFORMED = "malformed"
    HASH_MISMATCH = "hash_mismatch"
    OUT_OF_SCOPE = "out_of_scope"
    PROTECTED = "protected_path"
    LINK_ESCAPES = "link_escapes"
    SUBMODULE = "submodule"
    GIT_PATH = "git_path"
    CASE_COLLISION = "case_collision"
    OVERSIZE = "oversize"
    NO_CHANGE = "no_change"
    CAP = "submission_cap"
    LANE_DEADLINE = "lane_deadline"
    ROUND_OVER = "round_over"
    SETUP_FAILED = "setup_failed"
    PROBE_FAILED = "probe_failed"
    BUILD_FAILED = "build_failed"
    SMOKE_FAILED = "smoke_failed"
    TAMPERED = "tampered"
    HOST_FAULT = "host_fault"


class TicketState(StrEnum):
    """Where a ticket is."""

    QUEUED = "queued"
    MEASURING = "measuring"
    MEASURED = "measured"
    REJECTED = "rejected"


class Submission(Value):
    """What intake found in a lane's outbox; the input of the update `submit`, whose id is the ticket.

    Attributes:
        ticket: its id.
        lane: whose.
        digest: of the canonical manifest: same files, same digest.
        commit: the incumbent with the files laid on it, in the store; None when refused.
        tree: its tree.
        paths: the first of the changed paths, at most 20.
        files: how many files it changes.
        bytes: how much it holds.
        refused: why intake took nothing in.
        detail: the fact behind it, in words.
    """

    ticket: TicketId
    lane: Name
    digest: Digest
    commit: Sha | None = None
    tree: Sha | None = None
    paths: tuple[str, ...] = Field(default=(), max_length=20)
    files: int = 0
    bytes: int = 0
    refused: Cause | None = None
    detail: str = Field(default="", max_length=500)


class TicketStatus(Value):
    """What a lane may know of its ticket; mirrored into the lane, and the answer to `submit`.

    Attributes:
        ticket: which.
        state: where it is.
        duplicate: whether these very files were submitted before.
        verdict: what the measurement showed, once there is one.
        gain: the measured gain in the ledger's scale; None until it is measured.
        gain_unit: the gain in the metric's own unit, positive is better.
        unit: that unit.
        cause: why it was rejected.
        detail: the fact behind it.
    """

    ticket: TicketId
    state: TicketState
    duplicate: bool = False
    verdict: str = ""
    gain: float | None = None
    gain_unit: float | None = None
    unit: str = ""
    cause: Cause | None = None
    detail: str = ""
