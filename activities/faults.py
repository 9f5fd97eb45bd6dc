"""What a failed git command means: the host stands in the way, or the input cannot be used."""

from __future__ import annotations

from ..workflows.errors import HostFaultError, RefusedError
from .git import GitError

_PASSING = (
    "No space left",
    "unable to write file",
    "quota exceeded",
    ".lock'",
    "Cannot allocate memory",
    "Too many open files",
)


def explain(error: GitError, what: str, *, hint: str) -> HostFaultError | RefusedError:
    """The exception to raise for a git command that failed while doing `what`: retried only where that may help."""
    said = error.stderr or f"git ended with status {error.status}"
    if error.status < 0 or any(sign.lower() in said.lower() for sign in _PASSING):
        return HostFaultError(f"{what}: {said}", hint="free what is short, or wait for the lock's owner")
    return RefusedError(f"{what}: {said}", hint=hint)
