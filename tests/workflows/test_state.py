"""The budget of a run that loses a host: what was claimed stays charged, a new binding has a new number."""

from __future__ import annotations

from typing import Any

from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.budget import BindingState
from orch.workflows.model.candidate import Candidate, Failure
from orch.workflows.model.event import AttemptReplaced, AttemptStarted, CandidateMeasured, IterationStarted
from orch.workflows.model.usage import Usage
from orch.workflows.state import GoalState

AT: dict[str, Any] = {"seq": 1, "at": "2026-01-01T00:00:00Z"}


def key(binding: int) -> AttemptKey:
    return AttemptKey(run="r", iteration=1, candidate=1, binding=binding)


def lost(binding: int, host: str, **more: Any) -> Candidate:
    return Candidate(attempt=key(binding), agent="cmd:a", host=host, failure=Failure.HOST_LOST, **more)


def test_lost_attempt_is_charged_with_what_it_reported_and_followed_by_a_new_binding() -> None:
    state = GoalState()
    state.apply(IterationStarted(ordinal=1, commit="a" * 40, tree="a" * 40, attempts=(key(1),), **AT))
    state.apply(AttemptStarted(attempt=key(1), agent="cmd:a", **AT))

    state.apply(AttemptReplaced(lost=lost(1, "h2", usage=Usage(tokens_in=7)), attempt=key(2), agent="cmd:a", **AT))
    state.apply(AttemptStarted(attempt=key(2), agent="cmd:a", **AT))
    state.apply(
        CandidateMeasured(candidate=Candidate(attempt=key(2), agent="cmd:a", host="h1", usage=Usage(tokens_in=5)), **AT)
    )

    assert [(b.ordinal, b.state) for b in state.budget.bindings] == [
        (1, BindingState.SETTLED),
        (2, BindingState.SETTLED),
    ]
    assert state.usage.tokens == 12
    assert state.hosts == {"h1"}
    assert state.candidates[1].attempt == key(2)


def test_host_that_was_lost_is_not_asked_to_leave() -> None:
    state = GoalState(hosts={"h1", "h2"})
    state.apply(IterationStarted(ordinal=1, commit="a" * 40, tree="a" * 40, attempts=(key(1),), **AT))
    state.apply(AttemptStarted(attempt=key(1), agent="cmd:a", **AT))

    state.apply(AttemptReplaced(lost=lost(1, "h2"), attempt=key(2), agent="cmd:a", **AT))
    state.apply(CandidateMeasured(candidate=lost(2, "h3"), **AT))

    assert state.hosts == {"h1"}
