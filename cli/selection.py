"""Which attempt is meant: by number, else the winner's, else the latest. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey
from ..workflows.model.candidate import Candidate
from ..workflows.model.event import AttemptStarted, CandidateMeasured, Event, IterationDecided
from ..workflows.model.round.event import RoundStarted


def select(
    run: str, events: Sequence[Event], *, candidate: int | None = None, iteration: int | None = None
) -> AttemptKey:
    """The attempt that is meant; refused, with what there is, when there is none."""
    started = [event.attempt for event in events if isinstance(event, AttemptStarted)]
    if isinstance(next(iter(events), None), RoundStarted):
        raise RefusedError(f"{run} is a round: it has lanes, and no candidates", hint=f"orch show {run}")
    if not started:
        raise RefusedError(f"{run} has started no attempt", hint=f"orch show {run}")
    ordinal = iteration if iteration is not None else _newest(events, started, candidate)
    there = [key for key in started if key.iteration == ordinal]
    if not there:
        raise RefusedError(f"{run} has no iteration {ordinal}", hint=f"it has 1 to {started[-1].iteration}")
    index = candidate if candidate is not None else _winner(events, ordinal) or there[-1].candidate
    found = [key for key in there if key.candidate == index]
    if not found:
        have = ", ".join(str(number) for number in sorted({key.candidate for key in there}))
        raise RefusedError(f"iteration {ordinal} of {run} has no candidate {index}", hint=f"it has {have}")
    return found[-1]


def measured(events: Sequence[Event], key: AttemptKey) -> Candidate | None:
    """What the attempt left, once it has ended."""
    ended = (event.candidate for event in events if isinstance(event, CandidateMeasured))
    return next((candidate for candidate in ended if candidate.attempt == key), None)


def _newest(events: Sequence[Event], started: Sequence[AttemptKey], candidate: int | None) -> int:
    """The iteration whose candidate became the head last; else, or when a candidate is named, the newest."""
    won = [e.ordinal for e in events if isinstance(e, IterationDecided) and e.ranking.winner]
    return won[-1] if won and candidate is None else started[-1].iteration


def _winner(events: Sequence[Event], ordinal: int) -> int | None:
    """The iteration's winner; None while it is open or when the head stayed."""
    decided = (e for e in events if isinstance(e, IterationDecided) and e.ordinal == ordinal)
    return next((event.ranking.winner or None for event in decided), None)
