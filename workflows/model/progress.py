"""Progress: the facts of a finished iteration that tell whether a run gets anywhere, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from .base import Sha, Value
from .candidate import Candidate
from .event import IterationDecided, IterationStarted
from .reason import Reason, RunReason


class IterationFacts(Value):
    """What one iteration changed.

    Attributes:
        ordinal: the iteration's, from 1.
        tree: the head's tree after it.
        previous_tree: the head's tree before it.
        winner: the index that won; 0 is the incumbent.
        all_crashed: whether every agent failed, was killed or never started.
        all_unevaluable: whether no candidate could be measured.
        all_timed_out: whether every agent was stopped by its time limit.
        all_cut_short: whether every agent crashed or was stopped by its time limit.
        changed: whether any candidate changed anything, winner or not.
        failure_text: what the head's checks said; empty when they pass.
        vetoed: whether a green head was vetoed.
    """

    ordinal: int = Field(ge=1)
    tree: Sha
    previous_tree: Sha
    winner: int = Field(default=0, ge=0)
    all_crashed: bool = False
    all_unevaluable: bool = False
    all_timed_out: bool = False
    all_cut_short: bool = False
    changed: bool = False
    failure_text: str = ""
    vetoed: bool = False

    @classmethod
    def of(
        cls,
        started: IterationStarted,
        decided: IterationDecided,
        candidates: Sequence[Candidate],
        *,
        failure_text: str = "",
        vetoed: bool = False,
    ) -> IterationFacts:
        """Read them from an iteration's events; `candidates` holds one per index, in any order."""
        some = bool(candidates)
        return cls(
            ordinal=decided.ordinal,
            tree=decided.tree,
            previous_tree=started.tree,
            winner=decided.ranking.winner,
            all_crashed=some and all(c.crashed for c in candidates),
            all_unevaluable=some and not any(c.evaluable for c in candidates),
            all_timed_out=some and all(c.timed_out for c in candidates),
            all_cut_short=some and all(c.crashed or c.timed_out for c in candidates),
            changed=any(c.changed for c in candidates),
            failure_text=failure_text,
            vetoed=vetoed,
        )

    @property
    def still(self) -> bool:
        """Whether the head stayed and no candidate changed anything."""
        return self.tree == self.previous_tree and not self.changed


class NextKind(StrEnum):
    """`done`: both keys turned; `continue`: one more iteration; `end`: without success."""

    DONE = "done"
    CONTINUE = "continue"
    END = "end"


class Next(Value):
    """What a run does after an iteration.

    Attributes:
        kind: which way.
        reason: why it is done or ends; None when it goes on.
    """

    kind: NextKind
    reason: Reason[RunReason] | None = None
