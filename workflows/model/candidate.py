"""A candidate: what an attempt left, measured."""

from __future__ import annotations

from enum import StrEnum

from .attempt import AttemptKey, Snapshot
from .base import Sha, Value
from .exit import Exit, ExitKind
from .outcome import Account, Outcome, OutcomeKind
from .usage import Usage
from .verdict import Excerpt, Verdict

_CRASHES = frozenset(
    {
        OutcomeKind.RATE_LIMITED,
        OutcomeKind.OVERLOADED,
        OutcomeKind.NOT_AUTHORISED,
        OutcomeKind.OUT_OF_QUOTA,
        OutcomeKind.STREAM_BROKEN,
        OutcomeKind.CRASHED,
        OutcomeKind.KILLED,
        OutcomeKind.RESOURCE_LIMIT,
        OutcomeKind.NOT_STARTED,
    }
)
"""Outcomes that say nothing of what the agent can do; at a limit of its own it was stopped in the middle of work."""


class Failure(StrEnum):
    """At which step an attempt ended without a verdict."""

    NOT_STARTED = "not_started"
    SETUP = "setup_failed"
    HOST_LOST = "host_lost"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


class Candidate(Value):
    """The recorded facts of one attempt.

    Attributes:
        attempt: its key.
        agent: the agent's spec.
        exit: how the agent's process ended; None when it never ran.
        snapshot: the tree it left; None when there is none.
        verdict: the contract's results on that tree; None when it could not be measured.
        outcome: what became of the agent's last launch, in the light of the tree; None when it never ran.
        account: what the agent told of its last launch.
        launches: how often the agent was started.
        usage: what it cost, all launches together, also when it failed.
        session: the agent's session id, if any.
        session_used: everything that session used so far, where the agent counts like that.
        origin: where its session came from: fresh, continued or forked, and why.
        message: the agent's closing words.
        failure: the step that failed, when there is no verdict.
        failure_detail: what that step said.
        output: the agent's last words on stderr, for a failed agent.
        host: the host it was given, where it might have gone to several.
    """

    attempt: AttemptKey
    agent: str
    exit: Exit | None = None
    snapshot: Snapshot | None = None
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    account: Account | None = None
    launches: int = 0
    usage: Usage = Usage()
    session: str = ""
    session_used: Usage | None = None
    origin: str = ""
    message: str = ""
    failure: Failure | None = None
    failure_detail: str = ""
    output: Excerpt = Excerpt()
    host: str = ""

    @property
    def index(self) -> int:
        """The candidate's index in its iteration."""
        return self.attempt.candidate

    @property
    def changed(self) -> bool:
        """Whether its tree differs from the baseline's."""
        return self.snapshot is not None and self.snapshot.changed > 0

    @property
    def evaluable(self) -> bool:
        """Whether it has a verdict that answers."""
        return self.verdict is not None and self.verdict.evaluable

    @property
    def tree(self) -> Sha | None:
        """Its tree, if one was recorded."""
        return self.snapshot.tree if self.snapshot else None

    @property
    def crashed(self) -> bool:
        """Whether the agent failed, was killed or never started; by its outcome, where there is one."""
        if self.outcome is not None:
            return self.outcome.kind in _CRASHES
        return self.exit is None or self.exit.kind not in {ExitKind.OK, ExitKind.TIMED_OUT}

    @property
    def timed_out(self) -> bool:
        """Whether the agent was stopped by its time limit."""
        return self.exit is not None and self.exit.kind is ExitKind.TIMED_OUT
