"""Facts about a round's plan, and what is wrong with it."""

from __future__ import annotations

from enum import StrEnum

from ..base import Value
from .campaign import Revision
from .plan import DeviceSet, Direction, EntryStatus, Gates
from .trial import Noise

Where = tuple[str | int, ...]
"""Where a value stands in a file: keys and indexes from its root."""


class Source(StrEnum):
    """Which file says it."""

    ROUND = "round"
    CAMPAIGN = "campaign"


class Flaw(Value):
    """One thing that a plan must not say, or should not.

    Attributes:
        where: where it stands.
        message: what is wrong.
        mend: what helps.
        warning: whether the round may start all the same.
        source: in which file it stands.
    """

    where: Where
    message: str
    mend: str = ""
    warning: bool = False
    source: Source = Source.ROUND


class EntryFacts(Value):
    """What is known of a search plan's entry.

    Attributes:
        id: the entry.
        planes: the planes that it names.
        hypothesis: what is expected of it.
        stage: what it attacks.
        headroom: the share of the metric it can win at most, as a fraction.
        status: where it stands, by the record, else by the file.
        last: the record's last row of it.
        tried: the conditions under which it was rejected.
    """

    id: str
    planes: tuple[str, ...]
    hypothesis: str = ""
    stage: str = ""
    headroom: float | None = None
    status: EntryStatus = EntryStatus.PLANNED
    last: Revision | None = None
    tried: tuple[str, ...] = ()


class LaneFacts(Value):
    """What is known of a lane.

    Attributes:
        id: the lane.
        entry: the entry it names.
        globs: what it may write.
        condition: what changed since its entry was rejected.
        submissions: how many tickets it may have measured.
        paths: the paths of the incumbent's tree that its globs match, sorted.
        closed: those of them that are protected.
        idle: the indexes of globs that match nothing there.
        broken: the indexes of globs that are none.
    """

    id: str
    entry: str = ""
    globs: tuple[str, ...] = ()
    condition: str = ""
    submissions: int = 1
    paths: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    idle: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()


class Meeting(Value):
    """A path that is not there yet and that the globs of two lanes (by their indexes) would both match."""

    lanes: tuple[int, int]
    path: str


class PlanFacts(Value):
    """What the rules of a round's plan are asked about.

    Attributes:
        lanes: the lanes, in order.
        entries: the campaign's entries, in order; None in place of the whole when they could not be read.
        devices: the device sets, in order.
        meetings: new paths that two lanes could both write.
        gates: the gates of the round.
        noise: the last known noise of the metric.
        direction: which way it improves.
    """

    lanes: tuple[LaneFacts, ...] = ()
    entries: tuple[EntryFacts, ...] | None = ()
    devices: tuple[DeviceSet, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    gates: Gates = Gates()
    noise: Noise | None = None
    direction: Direction = Direction.LOWER
