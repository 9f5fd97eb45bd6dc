"""A ranking: the full order of an iteration's contenders, with the key that decided."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

from .base import Sha, Value
from .candidate import Candidate
from .reason import CandidateReason, Reason
from .usage import Usage
from .verdict import Verdict


class SignOff(StrEnum):
    """What the reviewer said of a tree, best first."""

    APPROVED = "approved"
    UNREVIEWED = "unreviewed"
    VETOED = "vetoed"


class Contender(Value):
    """What the tournament may look at: nothing else can influence the selection.

    Attributes:
        index: 0 for the incumbent, else the candidate's index.
        tree: its tree, if any.
        evaluable: whether its verdict answers.
        passed: per rung of the ladder, in order, whether it passed; empty without a verdict.
        progress: per rung, reported (passed, total) sub-results, or None.
        changed: whether its tree differs from the incumbent's.
        signoff: what the reviewer said.
        usage: its own cost.
    """

    index: int
    tree: Sha | None = None
    evaluable: bool = False
    passed: tuple[bool, ...] = ()
    progress: tuple[tuple[int, int] | None, ...] = ()
    changed: bool = False
    signoff: SignOff = SignOff.UNREVIEWED
    usage: Usage = Usage()

    @classmethod
    def of_candidate(cls, candidate: Candidate, signoff: SignOff = SignOff.UNREVIEWED) -> Contender:
        """Read the facts of a candidate."""
        verdict = candidate.verdict
        return cls(
            index=candidate.index,
            tree=candidate.tree,
            evaluable=candidate.evaluable,
            passed=tuple(rung.passed for rung in verdict.rungs) if verdict else (),
            progress=tuple(rung.progress for rung in verdict.rungs) if verdict else (),
            changed=candidate.changed,
            signoff=signoff,
            usage=candidate.usage,
        )

    @classmethod
    def of_incumbent(cls, verdict: Verdict, signoff: SignOff = SignOff.UNREVIEWED) -> Contender:
        """Let the head's own tree compete as candidate 0, at no cost."""
        return cls(
            index=0,
            tree=verdict.tree,
            evaluable=verdict.evaluable,
            passed=tuple(rung.passed for rung in verdict.rungs),
            progress=tuple(rung.progress for rung in verdict.rungs),
            signoff=signoff,
        )

    @property
    def advance(self) -> Fraction:
        """Sub-rung progress over the rungs that did not pass, as an exact sum of fractions."""
        parts = zip(self.passed, self.progress, strict=False)
        return sum((Fraction(p[0], p[1]) for ok, p in parts if not ok and p and p[1] > 0), Fraction(0))


class Standing(Value):
    """One line of a ranking: who, and why not higher."""

    index: int
    reason: Reason[CandidateReason]


class Ranking(Value):
    """The full order, best first.

    Attributes:
        order: one standing per contender; the first won.
        decided_by: the name of the key that put the winner before the runner-up; `only` without one.
    """

    order: tuple[Standing, ...]
    decided_by: str

    @property
    def winner(self) -> int:
        """The index of the winner; 0 means the incumbent stays."""
        return self.order[0].index

    def reason_of(self, index: int) -> Reason[CandidateReason]:
        """Why this contender stands where it stands."""
        return next(standing.reason for standing in self.order if standing.index == index)
