"""A campaign: its search plan as its file says it, and the record of what rounds made of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from ..base import Digest, RunId, Sha, Value
from .plan import Commands, Entry, EntryStatus, Gates, Metric, Name, RoundPlan, Text
from .trial import Noise


class CampaignEntry(Entry):
    """An entry of a campaign's file; what the record says of it comes first.

    Attributes:
        status: where the entry stands as long as no round has said more.
    """

    status: EntryStatus = EntryStatus.PLANNED


class NamedFile(Value):
    """A file of the incumbent's tree, and its hash where the file that names it gives one."""

    path: str
    sha256: Digest | None = None


class Campaign(Value):
    """What a campaign's file says.

    Attributes:
        id: the campaign.
        incumbent: the commit that its first round starts from, by a branch, a tag or an id.
        metric: what is measured.
        gates: what a measurement must show at the least; without the validator's files.
        validator: the files that decide whether a result is right.
        protected: gitwildmatch globs that belong to no lane.
        commands: what is run in every checkout.
        entries: the search plan.
    """

    id: Name
    incumbent: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    metric: Metric
    gates: Gates = Gates()
    validator: tuple[NamedFile, ...] = ()
    protected: tuple[Text, ...] = ()
    commands: Commands
    entries: tuple[CampaignEntry, ...]


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
        overtaken: rounds whose new incumbent was not taken, with the one that the campaign had advanced to meanwhile.
        store: the key of the repository's store: a campaign belongs to one repository.
        noise: what the last round measured of the incumbent against itself, on its noisiest device set.
    """

    campaign: Name
    incumbent: Sha | None = None
    evidence: str = ""
    rounds: tuple[tuple[Name, Digest], ...] = ()
    overtaken: tuple[tuple[Name, Sha], ...] = ()
    store: str = ""
    noise: Noise | None = None


class Record(Value):
    """A campaign's record as it lies on disk."""

    state: CampaignState
    revisions: tuple[Revision, ...] = ()


class RecordRound(Value):
    """Write the round's ledger document, from the events that are kept, and advance the campaign's record. Idempotent.

    Attributes:
        run: the run.
        store: the store's key.
        plan: the frozen plan.
        revisions: rows to append.
        incumbent: the new incumbent; None when the old one stays.
        noise: the noise of its A/A pairs, of the noisiest device set; None when there is none.
    """

    run: RunId
    store: str
    plan: RoundPlan
    revisions: tuple[Revision, ...]
    incumbent: Sha | None = None
    noise: Noise | None = None


class RoundRecord(Value):
    """Where the document lies, and whether the campaign advanced.

    Attributes:
        path: relative to the run's folder.
        sha256: of its content.
        size: in bytes.
        moved: the incumbent that another round had advanced the campaign to meanwhile: this round's new one was not
            taken, and what it kept is planned again. None as a rule.
    """

    path: str
    sha256: Digest
    size: int
    moved: Sha | None = None
