"""Exit statuses, one meaning each."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .views import AnyView


class ExitStatus(IntEnum):
    """What `orch` tells the shell.

    Attributes:
        SUCCEEDED: the run (or the command) succeeded.
        UNSUCCESSFUL: the run ended without success.
        REFUSED: the input cannot be used: usage, plan or preflight; no agent was started.
        UNREACHABLE: the engine does not answer.
        BUG: a fault of `orch`; versions and a traceback are in the named file.
        INTERRUPTED: the command was interrupted; the run goes on.
    """

    SUCCEEDED = 0
    UNSUCCESSFUL = 1
    REFUSED = 2
    UNREACHABLE = 3
    BUG = 70
    INTERRUPTED = 130


REFUSALS = frozenset(
    {"preflight_failed", "rung_cannot_run", "setup_failed", "tree_busy", "incumbent_fails", "too_noisy"}
)
"""Reasons of a run that ended before any agent was started because its input could not be used."""


def status_of(view: AnyView) -> ExitStatus:
    """The exit status of a command that followed this run to its end."""
    if view.status == "succeeded":
        return ExitStatus.SUCCEEDED
    if view.reason is not None and view.reason.code in REFUSALS:
        return ExitStatus.REFUSED
    return ExitStatus.UNSUCCESSFUL
