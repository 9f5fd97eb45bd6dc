"""How a process ended: a closed type, never a bare number."""

from __future__ import annotations

from enum import StrEnum

from .base import Value


class ExitKind(StrEnum):
    """The six ways a process can end, seen from outside."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LIMITED = "limited"
    SIGNALLED = "signalled"
    NOT_STARTED = "not_started"


class Exit(Value):
    """How a process ended.

    Attributes:
        kind: which of the six.
        number: the exit status when failed, the signal number when signalled, else None.
        detail: why it could not be started, or which limit it ran into.
    """

    kind: ExitKind
    number: int | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether it exited 0."""
        return self.kind is ExitKind.OK

    @property
    def evaluable(self) -> bool:
        """Whether the process itself answered: it ran and exited by its own will or by a signal of its own."""
        return self.kind in {ExitKind.OK, ExitKind.FAILED, ExitKind.SIGNALLED}

    def __str__(self) -> str:
        match self.kind:
            case ExitKind.FAILED:
                return f"exit {self.number}"
            case ExitKind.SIGNALLED:
                return f"signal {self.number}"
            case ExitKind.TIMED_OUT:
                return f"timed out ({self.detail})" if self.detail else "timed out"
            case ExitKind.LIMITED:
                return f"reached a limit ({self.detail})"
            case ExitKind.NOT_STARTED:
                return f"not started: {self.detail}"
            case ExitKind.OK:
                return "ok"
