"""A campaign's record: what rounds made of its entries, and the revision that it stands at."""

from __future__ import annotations

from typing import Any

from ..base import Digest, RunId, Sha, Value
from .plan import EntryStatus, Name, RoundPlan


class Revision(Value):
    """A row of a campaign's append-only record: what a round made of an entry.

    Attributes:
        campaign: the campaign.
        round: the round.
        run: its run.
        entry: the entry.
        lane: the lane that pursued it.
        status: where the entry stands from here on.
        why: the fact behind it, in words.
        ticket: the ticket that decided, if one did.
        gain: its gain alone, as a log ratio or difference.
        condition: the changed condition under which it was pursued, or, for one planned again, may be.
        at: ISO 8601 UTC.
    """

    campaign: Name
    round: Name
    run: RunId
    entry: Name
    lane: Name
    status: EntryStatus
    why: str
    ticket: str = ""
    gain: float | None = None
    condition: str = ""
    at: str = ""


class CampaignState(Value):
    """What a campaign stands at.

    Attributes:
        campaign: the campaign.
        incumbent: the revision that the next round starts from; None before any round advanced it.
        evidence: the run whose ledger shows it.
        rounds: the rounds that ended, with the digests of their plans, oldest first.
    """

    campaign: Name
    incumbent: Sha | None = None
    evidence: str = ""
    rounds: tuple[tuple[Name, Digest], ...] = ()


class RecordRound(Value):
    """Write the round's ledger document and advance the campaign's record. Idempotent.

    Attributes:
        run: the run.
        store: the store's key.
        plan: the frozen plan.
        document: `round-ledger.json`, whole.
        revisions: rows to append.
        incumbent: the new incumbent; None when the old one stays.
    """

    run: RunId
    store: str
    plan: RoundPlan
    document: dict[str, Any]
    revisions: tuple[Revision, ...]
    incumbent: Sha | None = None


class RoundRecord(Value):
    """Where the document lies: relative to the run's folder, with its SHA-256 and size in bytes."""

    path: str
    sha256: Digest
    size: int
