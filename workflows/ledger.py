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

PAGE = 200
"""Events in one answer, so that an answer stays far below Temporal's payload limit."""


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
        workflow.set_current_details(self._render(self.view()))
        return event

    def view(self) -> V:
        """The run as it stands now."""
        return self._project(self.events)

    def page(self, since: int) -> LedgerPage:
        """The events after `since`, at most PAGE of them."""
        page = tuple(self.events[since : since + PAGE])
        last = since + len(page) == len(self.events)
        return LedgerPage(events=page, ended=last and bool(self.events) and isinstance(self.events[-1], RunEnded))

    def unkept(self) -> tuple[Event, ...]:
        """The events that no activity has written to disk yet."""
        return tuple(self.events[self._kept :])

    def kept(self, events: tuple[Event, ...]) -> None:
        """Note that these events are on disk."""
        self._kept += len(events)


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
