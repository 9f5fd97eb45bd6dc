"""What a cheat is, and the typed ends that one may come to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class End(StrEnum):
    """What became of a cheat, by typed facts alone."""

    RESTORED = "protected paths restored"
    UNMOVED = "the tree is the baseline's"
    RED = "rungs failed"
    TAMPERED = "protected paths changed while it ran"
    REFUSED = "the workspace is gone"
    LIMITED = "ended at a limit"


@dataclass(frozen=True)
class Cheat:
    """One scripted attempt.

    Attributes:
        name: what it tries, as a fact that must not come true.
        script: shell lines, run as the agent. `@PY@ @REPO@ @STATE@ @RUN@ @STORE@ @HOME@ @SIBLING@ @PORT@ @SOCKET@` stand for
            the interpreter and for what must not be reached; a file `PWNED-…` anywhere outside is a success, and so is
            a word CANARY-… in what is left.
        ends: the typed ends that are allowed.
        names: paths that must be named as restored or tampered.
    """

    name: str
    script: str
    ends: tuple[End, ...]
    names: tuple[str, ...] = ()


def restored(name: str, script: str, *names: str) -> Cheat:
    """A cheat whose files are put back; each must be named."""
    return Cheat(name, script, (End.RESTORED,), names)


def unmoved(name: str, script: str) -> Cheat:
    """A cheat that comes to nothing in its own tree."""
    return Cheat(name, script, (End.UNMOVED,))


def red(name: str, script: str) -> Cheat:
    """A cheat whose tree is measured and fails."""
    return Cheat(name, script, (End.RED,))


def tampers(name: str, script: str, *names: str) -> Cheat:
    """A cheat that works while rungs run, and is named."""
    return Cheat(name, script, (End.TAMPERED,), names)


def limited(name: str, script: str) -> Cheat:
    """A cheat that a limit ends."""
    return Cheat(name, script, (End.LIMITED,))
