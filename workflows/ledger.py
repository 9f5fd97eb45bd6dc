"""The ledger of a live run: appends typed events and folds them into the state that decisions read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from temporalio import workflow

from .details import details
from .model.event import CandidateMeasured, Event, LedgerPage, RunEnded
from .model.verdict import Excerpt
from .model.view import RunView
from .rules.projection import project
from .state import GoalState

E = TypeVar("E", bound=Event)
S = TypeVar("S")
V = TypeVar("V")

PAGE, PAGE_BYTES = 200, 512 << 10
"""Events in one answer or step, and their JSON: an event may hold all samples of a measurement, a payload 2 MiB."""

SHOWN_EVERY = 50
"""Events of a replay between two renderings."""


class Ledger(Generic[S, V]):
    """Append-only events; the state and every view are projections of them.

    Args:
        state: what decisions read.
        fold: brings one event into it.
        project: what people see, from all events.
        render: that as Markdown.
        carried: the events to begin with.
    """

    def __init__(
        self,
        state: S,
        fold: Callable[[Event], None],
        project: Callable[[Sequence[Event]], V],
        render: Callable[[V], str],
        carried: tuple[Event, ...] = (),
    ) -> None:
        self.events: list[Event] = list(carried)
        self.state = state
        self._fold = fold
        self._project = project
        self._render = render
        self._kept = len(carried)
        for event in carried:
            fold(event)

    def record(self, kind: type[E], **facts: Any) -> E:
        """Append one event, fold it into the state, and show the run as it stands now in the Web UI."""
        event = kind(seq=len(self.events) + 1, at=workflow.now().isoformat(timespec="milliseconds"), **facts)
        self.events.append(event)
        self._fold(event)
        if self._is_shown():
            workflow.set_current_details(self._render(self.view()))
        return event

    def _is_shown(self) -> bool:
        """Whether this event is worth a rendering: of a long run that is replayed only now and then, and at its end.

        To render each event anew takes time that grows with the square of their number: a worker that is started in
        the middle of a large run would not catch up before its task is given to the next one.
        """
        last = self.events[-1]
        return not workflow.unsafe.is_replaying() or last.seq % SHOWN_EVERY == 0 or isinstance(last, RunEnded)

    def view(self) -> V:
        """The run as it stands now."""
        return self._project(self.events)

    def page(self, since: int) -> LedgerPage:
        """The events after `since`, as many as fit into one answer."""
        page = _fitting(self.events[since : since + PAGE])
        last = since + len(page) == len(self.events)
        return LedgerPage(events=page, ended=last and bool(self.events) and isinstance(self.events[-1], RunEnded))

    def unkept(self) -> tuple[Event, ...]:
        """The events that no activity has written to disk yet."""
        return tuple(self.events[self._kept :])

    def next_unkept(self) -> tuple[Event, ...]:
        """As many of these as fit into one step, the oldest first."""
        return _fitting(self.events[self._kept :])

    def kept(self, events: tuple[Event, ...]) -> None:
        """Note that these events are on disk."""
        self._kept += len(events)


def _fitting(events: Sequence[Event]) -> tuple[Event, ...]:
    """The first of the events, one at least, whose JSON is no larger than a page."""
    room = PAGE_BYTES
    for count, event in enumerate(events):
        room -= len(event.model_dump_json().encode())
        if room < 0:
            return tuple(events[: count or 1])
    return tuple(events)


GoalLedger = Ledger[GoalState, RunView]
"""The ledger of a goal run."""


def goal_ledger(carried: tuple[Event, ...]) -> GoalLedger:
    """A goal run's ledger, with the events that it continued as new with."""
    state = GoalState()
    return Ledger(state, state.apply, project, details, carried)


def slimmed(ledger: GoalLedger) -> tuple[Event, ...]:
    """The events to continue as new with; only the last iteration keeps its excerpts."""
    last = ledger.state.ordinal
    return tuple(_slim(event) if _older(event, last) else event for event in ledger.events)


def _older(event: Event, ordinal: int) -> bool:
    return isinstance(event, CandidateMeasured) and event.candidate.attempt.iteration < ordinal


def _slim(event: Event) -> Event:
    if not isinstance(event, CandidateMeasured) or event.candidate.verdict is None:
        return event
    blank = {"stdout": Excerpt(), "stderr": Excerpt()}
    rungs = tuple(rung.model_copy(update=blank) for rung in event.candidate.verdict.rungs)
    verdict = event.candidate.verdict.model_copy(update={"rungs": rungs})
    candidate = event.candidate.model_copy(update={"verdict": verdict, "output": Excerpt()})
    return event.model_copy(update={"candidate": candidate})
