"""A goal run: what starts it, how the host prepares and closes it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .base import RunId, Sha, Value
from .budget import Caps
from .contract import Contract
from .event import Event
from .outcome import SessionMode
from .placement import Exchange, Placement
from .promotion import PromoteTarget
from .reason import Reason, RunReason

MAX_TEMPLATE = 32_768
"""Characters of a prompt template: it travels in every attempt's history."""

USUAL_PRIORITY = 3
"""The middle of 1 to 5."""


class SandboxMode(StrEnum):
    """`auto`: on where a probe proves it, else off with a warning; `required`: refuse without; `off`: explicit."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


def is_url(repo: str) -> bool:
    """Whether a request's repository is a URL: a working tree is an absolute path."""
    return bool(repo) and not repo.startswith("/")


class GoalRequest(Value):
    """Everything that starts a goal run.

    Attributes:
        run: the run's id, chosen by the client once.
        repo: absolute path of the user's working tree, on the disk of `host`; or a URL.
        host: the stable id of the host that holds `repo`; its queue is `orch-host-<id>`.
        contract: the frozen contract.
        agents: agent specs; candidate i gets agents[(i - 1) % len(agents)].
        caps: what the run may use.
        sandbox: whether to run commands in the sandbox.
        sign_off: the reviewer agent's spec; empty for none.
        seal: whether to wait for approval of the contract before any agent starts.
        promote: where a success goes.
        path: the PATH of whoever started the run, so that its commands find the same programs; empty for the worker's.
        session: what the next iteration does with the winner's session.
        template: the project's own prompt template; empty for the usual one.
        placement: where its attempts may go.
        priority: 1 to 5; where many runs wait for one host, those with the smaller number go first.
        label: what the search attribute `OrchRepo` says instead of `repo`, where the engine must not learn the path.
        carried: events of the run so far, when it continued as new.
        ref: of a URL, which branch, tag or commit; empty for its HEAD.
    """

    run: RunId
    repo: str
    host: str
    contract: Contract
    agents: tuple[str, ...] = Field(min_length=1)
    caps: Caps = Caps()
    sandbox: SandboxMode = SandboxMode.AUTO
    sign_off: str = ""
    seal: bool = False
    promote: PromoteTarget = PromoteTarget()
    path: str = ""
    session: SessionMode = SessionMode.CONTINUE
    template: str = Field(default="", max_length=MAX_TEMPLATE)
    placement: Placement = Placement()
    priority: int = Field(default=USUAL_PRIORITY, ge=1, le=5)
    label: str = ""
    carried: tuple[Event, ...] = ()
    ref: str = ""


class PrepareRun(Value):
    """Check the repository, take the baseline into the store, reserve the tree for promotion. Idempotent.

    Attributes:
        run: the run's id.
        repo: the user's working tree, or a URL; empty on hosts where the run did not begin.
        contract: the frozen contract.
        agents: agent specs, whose programs must be there.
        sandbox: whether to run commands in the sandbox.
        promote: where a success goes.
        path: the PATH of whoever started the run; empty for the worker's.
        host: the host's stable id.
        exchange: URL of the artifact store that the baseline is published in; empty for none.
        ref: of a URL, which branch, tag or commit; empty for its HEAD.
    """

    run: RunId
    repo: str
    contract: Contract
    agents: tuple[str, ...]
    sandbox: SandboxMode
    promote: PromoteTarget
    path: str = ""
    host: str = ""
    exchange: str = ""
    ref: str = ""


class Baseline(Value):
    """A snapshot of the user's tree.

    Attributes:
        commit: the snapshot's commit in the store.
        tree: its tree, dirty and untracked files included.
        parent: the user's HEAD commit; None on an unborn branch.
        dirty: whether the tree differs from HEAD's.
    """

    commit: Sha
    tree: Sha
    parent: Sha | None = None
    dirty: bool = False


class RunPrepared(Value):
    """What the host found, or why the run is refused.

    Attributes:
        store: the key of the repository's store.
        baseline: the snapshot the first iteration starts from; None when refused.
        contract: the contract with protected paths resolved; this one is frozen.
        sandbox: whether commands run in the sandbox.
        warnings: facts worth telling in the run's summary.
        refused: why nothing can start.
    """

    store: str = ""
    baseline: Baseline | None = None
    contract: Contract
    sandbox: bool = False
    warnings: tuple[str, ...] = ()
    refused: Reason[RunReason] | None = None


class MoveHead(Value):
    """Point the run's head in the store at a commit, and keep the ledger's newest events on disk. Idempotent.

    Attributes:
        run: which.
        store: the store's key.
        commit: the new head.
        events: the events that are not on disk yet.
        exchange: where the commit comes from when another host made it, and goes to when this one did.
        base: the head before, which the exchange has; empty without an exchange.
    """

    run: RunId
    store: str
    commit: Sha
    events: tuple[Event, ...] = ()
    exchange: Exchange | None = None
    base: str = ""


class KeepEvents(Value):
    """Keep events of the ledger on disk. Idempotent.

    Attributes:
        run: which.
        events: in order, those that follow the ones on disk; what is there already is not written again.
    """

    run: RunId
    events: tuple[Event, ...]


class CloseRun(Value):
    """Keep the last events and let go of what the run reserved. Idempotent.

    Attributes:
        run: which.
        repo: the user's working tree, whose reservation ends.
        store: the store's key; empty when the run never had one.
        events: the events that are not on disk yet.
    """

    run: RunId
    repo: str
    store: str
    events: tuple[Event, ...] = ()
