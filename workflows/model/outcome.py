"""How an agent's work ended: facts it told of itself, and the one word we make of them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import Value
from .usage import Usage


class OutcomeKind(StrEnum):
    """What became of one launch of an agent; closed, and judged from facts, never from the exit status alone."""

    DONE = "done"
    NO_CHANGE = "no_change"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    NOT_AUTHORISED = "not_authorised"
    OUT_OF_QUOTA = "out_of_quota"
    CONTEXT_FULL = "context_full"
    TURN_LIMIT = "turn_limit"
    BUDGET_LIMIT = "budget_limit"
    REFUSED = "refused"
    EMPTY_ANSWER = "empty_answer"
    STREAM_BROKEN = "stream_broken"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    RESOURCE_LIMIT = "resource_limit"
    KILLED = "killed"
    NOT_STARTED = "not_started"


class Outcome(Value):
    """One word with the facts behind it.

    Attributes:
        kind: what became of the launch.
        detail: what the agent or the system said (at most 500 characters).
        retry_at: absolute Unix time before which another try is pointless, where somebody said so.
    """

    kind: OutcomeKind
    detail: str = ""
    retry_at: float | None = None


class Account(Value):
    """What an agent told of its own run on its event stream.

    Attributes:
        final: whether the event was there that the agent always ends with.
        answered: whether it said anything at its end.
        stop: why the model stopped, in the agent's word.
        error: the failure it reported; None when it reported none.
        detail: its words about that failure (at most 500 characters).
        retry_at: absolute Unix time at which the provider takes requests again, where it said so.
        turns: model requests or steps, as far as they can be counted.
        denials: tools it asked for and was denied, the first few.
        unknown_events: events of a kind never seen before, which were passed over.
    """

    final: bool = False
    answered: bool = False
    stop: str = ""
    error: OutcomeKind | None = None
    detail: str = ""
    retry_at: float | None = None
    turns: int | None = None
    denials: tuple[str, ...] = ()
    unknown_events: int = 0


SESSION_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{3,127}$"
"""What an id may look like that goes into a command line: never an option, never a path."""


class Session(Value):
    """A conversation that an agent can take up again.

    Attributes:
        agent: the adapter's name; no other can continue it.
        id: the agent's id of it.
        attempt: the name of the attempt whose private home holds it.
        used: everything it used so far, for agents that report a session's totals instead of a run's.
    """

    agent: str
    id: str = Field(pattern=SESSION_ID)
    attempt: str
    used: Usage = Usage()


class SessionMode(StrEnum):
    """What the next iteration does with the winner's session: go on in it, branch off from it, or begin anew."""

    CONTINUE = "continue"
    FORK = "fork"
    FRESH = "fresh"
