"""The options of a round as they were given; `round_start.py` resolves them to a request."""

from __future__ import annotations

from pathlib import Path

from ..workflows.model.base import Value
from ..workflows.model.goal import USUAL_PRIORITY


class RoundOptions(Value):
    """Raw options of a round.

    Attributes:
        plan: the round plan's file.
        repo: a folder of the user's working tree.
        promote: `none`, `worktree` or `branch:NAME`: where a new incumbent goes.
        sandbox: False: off; a round without one is refused otherwise.
        priority: 1 to 5, the smaller goes first.
    """

    plan: Path
    repo: Path = Path()
    promote: str = "none"
    sandbox: bool = True
    priority: int = USUAL_PRIORITY
