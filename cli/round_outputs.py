"""What a lane's agent, or the trials of a measurement, printed: every job of a folder, in the order of their start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..activities.supervisor import IDENTITY, JOB
from ..workflows.errors import RefusedError
from ..workflows.model.event import Event, RunEnded
from ..workflows.model.round import event as ev
from ..workflows.model.round.view import RoundView
from .attempt_outputs import Subject
from .round_selection import attempt_of, lane_of, measurement_of, ticket_of

TREES = frozenset({"tree", "base", "candidate"})
"""Folders that hold working copies: nothing in them is a job of ours."""


@dataclass(frozen=True)
class RoundSubject(Subject):
    """A lane, or a measurement.

    Attributes:
        name: what it is called.
        lane: the lane, when it is one.
        ticket: the ticket that is measured, when it is one.
    """

    name: str = ""
    lane: str = ""
    ticket: str = ""

    def __str__(self) -> str:
        return self.name

    def over(self, events: Sequence[Event]) -> bool:
        """Whether nothing more will be printed there."""
        return any(self._ends(event) for event in events)

    def _ends(self, event: Event) -> bool:
        match event:
            case ev.LaneEnded():
                return event.lane == self.lane
            case ev.TicketMeasured() | ev.TicketRejected():
                return bool(self.ticket) and event.ticket == self.ticket
            case RunEnded():
                return True
            case _:
                return False

    def rests(self, event: Event) -> bool:
        """Whether the event says that the lane's agent waits for the provider."""
        return isinstance(event, ev.LaneWaiting) and event.lane == self.lane

    def jobs(self) -> list[Path]:
        """The folders of its jobs."""
        found = [path.parent for path in self.folder.glob(f"*/{JOB}") if path.parent.name not in TREES]
        ours = [job for job in found if (job / IDENTITY).exists()]
        return sorted(ours, key=lambda job: (job / JOB).stat().st_mtime_ns)


def round_subject(
    run_folder: Path,
    events: Sequence[Event],
    view: RoundView,
    *,
    lane: str | None = None,
    ticket: str | None = None,
    measurement: int | None = None,
) -> RoundSubject:
    """What was named: a ticket's measurement, another one by its number, else a lane."""
    attempts = run_folder / "attempts"
    if ticket is not None:
        known = ticket_of(view, ticket)
        if not known.ordinal:
            raise RefusedError(f"{known.ticket} was not measured", hint=f"orch show {view.id}")
        key = measurement_of(view, known.ordinal)
        return RoundSubject(key, attempts / key.name, name=f"ticket {known.ticket}", ticket=known.ticket)
    if measurement is not None:
        key = measurement_of(view, measurement)
        known_ticket = next((one.ticket for one in view.tickets if one.ordinal == measurement), "")
        return RoundSubject(key, attempts / key.name, name=f"measurement {measurement}", ticket=known_ticket)
    chosen = lane_of(view, lane)
    key = attempt_of(view, events, chosen)
    return RoundSubject(key, attempts / key.name, chosen.agent, name=f"lane {chosen.id}", lane=chosen.id)
