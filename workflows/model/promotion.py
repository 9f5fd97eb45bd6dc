"""Promotion: moving the user's tree or a branch to the verified result, all or nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from .base import RunId, Sha, Value
from .reason import PromotionReason, Reason


class PromoteMode(StrEnum):
    """Where the result goes."""

    WORKTREE = "worktree"
    BRANCH = "branch"
    NONE = "none"


class PromoteTarget(Value):
    """`worktree`, `branch:NAME` or `none`."""

    mode: PromoteMode = PromoteMode.WORKTREE
    branch: str = ""

    @model_validator(mode="after")
    def _branch_has_a_name(self) -> Self:
        if (self.mode is PromoteMode.BRANCH) != bool(self.branch):
            raise ValueError("write --promote worktree, --promote branch:NAME or --promote none")
        return self

    @classmethod
    def parse(cls, text: str) -> PromoteTarget:
        """Read `worktree`, `branch:NAME` or `none`; anything else is a ValueError."""
        mode, _, branch = text.partition(":")
        return cls(mode=PromoteMode(mode), branch=branch)

    def __str__(self) -> str:
        return f"branch:{self.branch}" if self.branch else self.mode.value


class Promote(Value):
    """Move `repo` from tree `old` to tree `new`; run again, it finishes what was begun.

    Attributes:
        run: whose result.
        repo: absolute path of the user's working tree.
        store: the store's key.
        old: the commit whose tree the user's tree must still show on every changed path.
        new: the commit to bring.
        target: where to.
        chain: whether a branch gets the commits from `old` to `new` as they are; one that stands at `old` moves on.
    """

    run: RunId
    repo: str
    store: str
    old: Sha
    new: Sha
    target: PromoteTarget
    chain: bool = False


class Promotion(Value):
    """What a promotion did: moved (with its tree), or refused with a reason and nothing touched.

    Attributes:
        target: where to.
        tree: the tree that stands there now; None when refused.
        paths: how many paths moved (0 when everything stood there already).
        refused: why not.
    """

    target: PromoteTarget
    tree: Sha | None = None
    paths: int = 0
    refused: Reason[PromotionReason] | None = None
