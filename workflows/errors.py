"""The exceptions of `orch`; expected outcomes are values, these are what is left.

OrchError
├── RefusedError      input that cannot be used: nothing was started, nothing is lost (exit status 2)
├── UnreachableError  the engine does not answer (exit status 3)
└── HostFaultError    the host stands in the way for now: a lock held, no space, a process that cannot start;
                      the only kind that an activity may be retried for
"""

from __future__ import annotations


class OrchError(Exception):
    """The base: a lower-case fragment that names the thing, and a hint that names the mend."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RefusedError(OrchError):
    """Input that cannot be used."""


class UnreachableError(OrchError):
    """The engine does not answer."""


class HostFaultError(OrchError):
    """The host stands in the way for now."""
