"""A round's start: what starts it, how its host prepares it."""

from __future__ import annotations

from pydantic import Field

from ..base import RunId, Sha, Value
from ..goal import USUAL_PRIORITY, SandboxMode
from ..promotion import PromoteMode, PromoteTarget
from ..reason import Reason, RunReason
from .plan import RoundPlan


class RoundRequest(Value):
    """Everything that starts a round.

    Attributes:
        run: the run's id: `round-CAMPAIGN-ROUND`, so that a round is started once.
        repo: absolute path of the user's working tree on the disk of `host`.
        host: the stable id of that host.
        plan: the frozen plan.
        sandbox: `required`, or `off` where that was said.
        promote: where a new incumbent goes: a branch, the working tree, or nowhere.
        path: the PATH of whoever started it.
        priority: 1 to 5, as of every run.
        label: what `OrchRepo` says instead of `repo`.
    """

    run: RunId
    repo: str
    host: str
    plan: RoundPlan
    sandbox: SandboxMode = SandboxMode.REQUIRED
    promote: PromoteTarget = PromoteTarget(mode=PromoteMode.NONE)
    path: str = ""
    priority: int = Field(default=USUAL_PRIORITY, ge=1, le=5)
    label: str = ""


class PrepareRound(Value):
    """Check host, repository and plan, and bring the incumbent into the store. Idempotent; see RoundRequest."""

    run: RunId
    repo: str
    plan: RoundPlan
    sandbox: SandboxMode
    promote: PromoteTarget
    path: str = ""
    host: str = ""


class RoundPrepared(Value):
    """What the host found, or why the round is refused.

    Attributes:
        store: the store's key.
        incumbent: the incumbent's commit, in the store.
        tree: its tree.
        baseline: the user's tree as it is, for a promotion into it; None where nothing is promoted into it.
        sandbox: whether commands run in the sandbox.
        warnings: facts worth telling.
        refused: why nothing can start.
    """

    store: str = ""
    incumbent: Sha | None = None
    tree: Sha | None = None
    baseline: Sha | None = None
    sandbox: bool = True
    warnings: tuple[str, ...] = ()
    refused: Reason[RunReason] | None = None
