"""How the projection reads a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ...model.event import Event
from ...model.round.event import GuardMeasured, HeadRerun, StepComposed, TicketMeasured
from ...model.round.trial import Measurement

E = TypeVar("E")

LONGEST = 200
"""Characters of a foreign text that a view keeps: it goes through queries again and again."""

_MEASURED = (GuardMeasured, TicketMeasured, StepComposed, HeadRerun)


def every(events: Iterable[Event], kind: type[E]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def last(events: Sequence[Event], kind: type[E]) -> E | None:
    """The last event of one kind."""
    return next((event for event in reversed(events) if isinstance(event, kind)), None)


def cut(text: str) -> str:
    """The text, as much of it as a view keeps."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def measurements(events: Iterable[Event]) -> Iterator[tuple[float, Measurement]]:
    """All measurements, each with the Unix time at which its device was free again."""
    for event in events:
        if isinstance(event, _MEASURED) and event.measurement is not None:
            yield event.measurement.free_at or event.time, event.measurement
