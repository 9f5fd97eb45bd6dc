"""Outcome: what became of a launch, judged from how the process ended and what the agent told, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.exit import Exit, ExitKind
from ..model.outcome import Account, Outcome, OutcomeKind

CUT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
"""Stop reasons of an answer that was cut at the model's output limit."""

STOPPED = "stopped"
"""The detail of an exit that we asked for."""

OVERDUE = "deadline"
"""The detail of a timeout at the absolute deadline, and not at the process's own time limit."""

FIRST_PAUSE_S = 1.0
"""The shortest pause where the provider said when to come back; doubled each time."""


@dataclass(frozen=True)
class Policy:
    """What follows an outcome.

    Attributes:
        retries: how often the agent is launched again in the same attempt.
        first_wait_s: seconds before the first retry, where nobody said when; doubled each time.
        most_wait_s: the longest such wait.
        fatal: whether every other attempt with the same agent would end the same way.
    """

    retries: int = 0
    first_wait_s: float = 0.0
    most_wait_s: float = 0.0
    fatal: bool = False


KEEP = Policy()
"""The attempt is over; what it left is measured."""

POLICIES: Mapping[OutcomeKind, Policy] = {
    OutcomeKind.DONE: KEEP,
    OutcomeKind.NO_CHANGE: KEEP,
    OutcomeKind.RATE_LIMITED: Policy(retries=100, first_wait_s=30, most_wait_s=900),
    OutcomeKind.OVERLOADED: Policy(retries=8, first_wait_s=10, most_wait_s=300),
    OutcomeKind.NOT_AUTHORISED: Policy(fatal=True),
    OutcomeKind.OUT_OF_QUOTA: Policy(fatal=True),
    OutcomeKind.CONTEXT_FULL: KEEP,
    OutcomeKind.TURN_LIMIT: KEEP,
    OutcomeKind.BUDGET_LIMIT: KEEP,
    OutcomeKind.REFUSED: KEEP,
    OutcomeKind.EMPTY_ANSWER: KEEP,
    OutcomeKind.STREAM_BROKEN: Policy(retries=2, first_wait_s=2, most_wait_s=30),
    OutcomeKind.CRASHED: KEEP,
    OutcomeKind.TIMED_OUT: KEEP,
    OutcomeKind.RESOURCE_LIMIT: KEEP,
    OutcomeKind.KILLED: KEEP,
    OutcomeKind.NOT_STARTED: Policy(fatal=True),
}
"""Rate limits and overload are waited for; a bad key or an empty account ends every attempt with that agent."""


def judge(ended: Exit, account: Account | None, limit: OutcomeKind | None = None) -> Outcome:
    """The outcome of one launch.

    Args:
        ended: how the process ended.
        account: what the agent told on its event stream; None for an agent without one.
        limit: the limit at which we stopped it, if that is why it ended.
    """
    if limit is not None:
        return Outcome(kind=limit, detail=ended.detail)
    if early := _early(ended):
        return Outcome(kind=early, detail=ended.detail)
    if account is not None:
        return _told(ended, account)
    return Outcome(kind=OutcomeKind.DONE) if ended.ok else Outcome(kind=OutcomeKind.CRASHED, detail=str(ended))


def _told(ended: Exit, account: Account) -> Outcome:
    """The outcome by the agent's own account; its exit status only adds to the words."""
    if account.error is not None:
        return Outcome(kind=account.error, detail=account.detail, retry_at=account.retry_at)
    if not account.final:
        kind = OutcomeKind.STREAM_BROKEN if ended.ok else OutcomeKind.CRASHED
        return Outcome(kind=kind, detail=f"{ended}, without its closing event")
    if account.stop in CUT:
        return Outcome(kind=OutcomeKind.CONTEXT_FULL, detail=f"the answer was cut: {account.stop}")
    kind = OutcomeKind.DONE if account.answered else OutcomeKind.EMPTY_ANSWER
    return Outcome(kind=kind, detail="" if ended.ok else str(ended))


def _early(ended: Exit) -> OutcomeKind | None:
    """What is plain from the process alone: it never ran, or somebody else ended it."""
    match ended.kind:
        case ExitKind.NOT_STARTED:
            return OutcomeKind.NOT_STARTED
        case ExitKind.TIMED_OUT:
            return OutcomeKind.TIMED_OUT
        case ExitKind.LIMITED:
            return OutcomeKind.RESOURCE_LIMIT
        case ExitKind.SIGNALLED if ended.detail == STOPPED:
            return OutcomeKind.KILLED
        case _:
            return None


def with_tree(outcome: Outcome, *, changed: bool) -> Outcome:
    """The same in the light of the tree: who says it is done and changed nothing has not done anything."""
    if changed and outcome.kind is OutcomeKind.EMPTY_ANSWER:
        return outcome.model_copy(update={"kind": OutcomeKind.DONE})
    if not changed and outcome.kind is OutcomeKind.DONE:
        return outcome.model_copy(update={"kind": OutcomeKind.NO_CHANGE})
    return outcome


def retry_at(outcome: Outcome, *, before: int, now: float, deadline: float) -> float | None:
    """When to launch the agent again (Unix time), or None: never, or not before the deadline.

    Args:
        outcome: what became of the last launch.
        before: how many launches of this attempt ended with the same kind before it.
        now: Unix time.
        deadline: absolute Unix time at which the attempt ends.
    """
    policy = POLICIES[outcome.kind]
    if before >= policy.retries:
        return None
    first = policy.first_wait_s if outcome.retry_at is None else FIRST_PAUSE_S
    at = now + min(policy.most_wait_s, first * 2 ** min(before, 30))
    if outcome.retry_at is not None:
        at = max(at, outcome.retry_at)  # a time that has passed, again and again, is no leave to ask without a pause
    return at if at < deadline else None
