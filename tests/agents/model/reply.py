"""What a script says: a reply with actions, or trouble instead of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Write:
    """Make a file, by its path in the working folder."""

    path: str
    content: str


@dataclass(frozen=True)
class Run:
    """Run a shell command."""

    command: str


Action = Write | Run


class Stop(StrEnum):
    """Why the model stops."""

    DONE = "done"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Reply:
    """One answer of the model."""

    text: str = ""
    actions: tuple[Action, ...] = ()
    stop: Stop = Stop.DONE


class Trouble(StrEnum):
    """What goes wrong; every dialect has its own status and words for those that a provider reports."""

    RATE_LIMITED = "rate_limited"
    UNAUTHORISED = "unauthorised"
    QUOTA = "quota"
    CONTEXT_FULL = "context_full"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    CUT = "cut"
    HANG = "hang"


@dataclass(frozen=True)
class Fault:
    """Trouble and when it comes.

    Attributes:
        trouble: its kind.
        times: how many requests of a run it meets; None: every one.
        rounds: how many rounds of tools go well before it.
        retry_after: seconds in the header of that name; None: no header.
        seconds: how long a hanging answer takes; then it comes.
    """

    trouble: Trouble
    times: int | None = None
    rounds: int = 0
    retry_after: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Usage:
    """Tokens of one request.

    Attributes:
        fresh: tokens of the prompt that were no cached ones. (OpenAI counts cached tokens in, Anthropic does not.)
        cached: tokens of the prompt that came from the provider's cache.
        out: tokens of the answer.
    """

    fresh: int
    cached: int
    out: int


USAGE = Usage(fresh=1000, cached=200, out=50)
"""What every reply of a script costs, so that N requests cost N times that."""

NOTHING = Usage(0, 0, 0)
"""What a request without tools costs: agents that ask for titles spend no more than those that do not."""
