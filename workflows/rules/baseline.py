"""May the run start? Read off the unchanged tree, measured first."""

from __future__ import annotations

from ..model.exit import Exit, ExitKind
from ..model.reason import Reason, RunReason
from ..model.verdict import Verdict

CANNOT_EXECUTE = frozenset({126, 127})
"""What a shell answers when a command is not executable or not found (POSIX, 2.8.2)."""


def refusal(baseline: Verdict) -> Reason[RunReason] | None:
    """Why no agent may be paid for: set-up fails, a rung cannot run, or there is nothing to do; None to go on."""
    if baseline.setup is not None and not baseline.setup.ok:
        return Reason(code=RunReason.SETUP_FAILED, data={"exit": str(baseline.setup)})
    for rung in baseline.rungs:
        if _cannot_run(rung.exit):
            return Reason(code=RunReason.RUNG_CANNOT_RUN, data={"rung": rung.name, "exit": str(rung.exit)})
    if baseline.passed:
        return Reason(code=RunReason.ALREADY_GREEN, data={"rungs": baseline.rungs_total})
    return None


def _cannot_run(exit_: Exit) -> bool:
    return exit_.kind is ExitKind.NOT_STARTED or (exit_.kind is ExitKind.FAILED and exit_.number in CANNOT_EXECUTE)
