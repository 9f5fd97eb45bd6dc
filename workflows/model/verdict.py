"""A verdict: the recorded results of a contract on one tree."""

from __future__ import annotations

from .base import Digest, Sha, Value
from .exit import Exit


class Excerpt(Value):
    """Head and tail of one output stream, with the whole of it on disk.

    Attributes:
        head: the first characters (at most 1 KiB), control sequences removed.
        tail: the last characters (at most 1 KiB); empty when `head` holds everything.
        size: bytes of the whole stream.
        path: the artifact that holds the whole, relative to the run's folder.
    """

    head: str = ""
    tail: str = ""
    size: int = 0
    path: str = ""


class RungResult(Value):
    """The recorded facts of one rung.

    Attributes:
        name: the rung's name.
        exit: how its command ended.
        wall_s: wall seconds it took.
        stdout: what it printed.
        stderr: what it printed as errors.
        progress: (passed, total) where the rung reported sub-results, for example tests passed.
    """

    name: str
    exit: Exit
    wall_s: float = 0.0
    stdout: Excerpt = Excerpt()
    stderr: Excerpt = Excerpt()
    progress: tuple[int, int] | None = None

    @property
    def passed(self) -> bool:
        """Whether the command exited 0."""
        return self.exit.ok


class Verdict(Value):
    """Facts of a contract on one tree; what they mean is derived.

    Attributes:
        tree: the measured tree.
        contract_digest: the contract they were measured by.
        host: the host class they were measured on.
        rungs: results in ladder order; a gate stops at the first that does not pass.
        rungs_total: how many rungs the ladder has.
        tampered: protected paths that changed while the rungs ran.
        setup: how set-up of the fresh copy ended; None when the contract has none.
        reused: whether an earlier measurement of the same tree was taken.
    """

    tree: Sha
    contract_digest: Digest
    host: str
    rungs: tuple[RungResult, ...]
    rungs_total: int
    tampered: tuple[str, ...] = ()
    setup: Exit | None = None
    reused: bool = False

    @property
    def rungs_passed(self) -> int:
        """How many rungs passed."""
        return sum(rung.passed for rung in self.rungs)

    @property
    def evaluable(self) -> bool:
        """Whether every rung that ran gave an answer, over an untouched ladder and a finished set-up."""
        ready = self.setup is None or self.setup.ok
        return ready and not self.tampered and bool(self.rungs) and all(rung.exit.evaluable for rung in self.rungs)

    @property
    def passed(self) -> bool:
        """Whether the whole ladder passed: never for an empty or short list of results."""
        return self.evaluable and self.rungs_passed == self.rungs_total and self.rungs_total > 0

    @property
    def failing(self) -> tuple[RungResult, ...]:
        """The rungs that did not pass, in ladder order."""
        return tuple(rung for rung in self.rungs if not rung.passed)
