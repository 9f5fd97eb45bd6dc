"""One attempt: its key, and the request and result of each of its steps."""

from __future__ import annotations

from pydantic import Field

from .base import RunId, Sha, Value
from .contract import Contract
from .exit import Exit
from .outcome import Account, Outcome, OutcomeKind, Session
from .placement import Exchange, Placement
from .usage import Usage
from .verdict import Excerpt


class AttemptKey(Value):
    """What makes an attempt unique: never reused, whatever crashes.

    Attributes:
        run: the run it belongs to.
        iteration: the monotone ordinal of its iteration, from 1.
        candidate: its index in the iteration, from 1 (0 is the incumbent).
        binding: the ordinal of its budget binding in the run, from 1; a new binding is a new attempt.
    """

    run: RunId
    iteration: int = Field(ge=0)
    candidate: int = Field(ge=0)
    binding: int = Field(ge=0)

    @property
    def name(self) -> str:
        """A name for folders, refs and tables, unique in the run."""
        return f"i{self.iteration}-c{self.candidate}-b{self.binding}"


class Snapshot(Value):
    """A tree recorded in the store.

    Attributes:
        commit: the commit that holds the tree, kept alive by a ref of the run.
        tree: the tree; what is measured and promoted.
        changed: how many paths differ from the baseline.
        paths: the first of those paths, at most 20, escaped for display.
        restored: protected paths the agent changed; the tree holds the baseline's content for them.
        warnings: facts worth telling (nested repositories left out, odd files skipped).
        setup_changed: tracked paths that set-up changed, at most 20; as it left them they are no change of the agent's.
    """

    commit: Sha
    tree: Sha
    changed: int = 0
    paths: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    setup_changed: tuple[str, ...] = ()


class SpendCaps(Value):
    """What all attempts and reviews of a run may spend together; None is no cap.

    Attributes:
        tokens: tokens of every kind.
        usd: US dollars.
    """

    tokens: int | None = None
    usd: float | None = None


class AttemptRequest(Value):
    """Everything one attempt needs; the input of its workflow.

    Attributes:
        attempt: its key.
        agent: the agent's spec.
        host: the host that holds the repository; it runs there unless it may go to others.
        store: the store's key.
        commit: the commit it starts from.
        contract: the frozen contract.
        feedback: what failed last time and what others tried.
        notes: operator notes, oldest first.
        deadline: absolute Unix time of the run's deadline; None without one.
        limit_s: wall seconds for the agent, all its launches together; what it rests between them does not count.
        sandbox: whether commands run in the sandbox.
        session: the conversation to take up; None to begin anew.
        fork: whether to branch off from that session under a new id.
        origin: where the session comes from, in words.
        template: the project's own prompt template; empty for the usual one.
        spend: what the run as a whole may spend.
        placement: where it may go.
        exchange: the artifact store by which it may go to another host; None: it stays on `host`.
    """

    attempt: AttemptKey
    agent: str
    host: str
    store: str
    commit: Sha
    contract: Contract
    feedback: str = ""
    notes: tuple[str, ...] = ()
    deadline: float | None = None
    limit_s: float
    sandbox: bool
    session: Session | None = None
    fork: bool = False
    origin: str = ""
    template: str = ""
    spend: SpendCaps = SpendCaps()
    placement: Placement = Placement()
    exchange: Exchange | None = None


class OpenWorkspace(Value):
    """Wait for room on the host, then make the attempt's workspace from a commit of the store and set it up.

    Attributes:
        attempt: whose workspace; it holds a slot of the host until it is closed, also over a worker's death.
        store: the store's key.
        commit: what is checked out.
        contract: names the set-up.
        sandbox: whether set-up runs in the sandbox.
        deadline: absolute Unix time after which it waits no longer; None without one.
        exchange: where a commit comes from that this host's store does not have.
    """

    attempt: AttemptKey
    store: str
    commit: Sha
    contract: Contract
    sandbox: bool
    deadline: float | None = None
    exchange: Exchange | None = None


class Workspace(Value):
    """An isolated working copy.

    Attributes:
        path: absolute path on the host that made it; None when the deadline passed before there was room.
        setup: how set-up ended; None when the contract has none.
        setup_output: what a failing set-up printed.
    """

    path: str | None
    setup: Exit | None = None
    setup_output: Excerpt = Excerpt()


class RunAgent(Value):
    """Run one agent in its workspace, under a supervisor that outlives the worker.

    Attributes:
        attempt: whose workspace.
        agent: the agent's spec, for example `cmd:./agent.sh`.
        store: the store's key.
        contract: the frozen contract, for the prompt.
        feedback: what failed last time and what others tried; empty in the first iteration.
        notes: operator notes, oldest first.
        deadline: absolute Unix time at which the agent is stopped; None without one.
        sandbox: whether the agent runs in the sandbox.
        launch: the ordinal of this start in the attempt, from 1: what ended for a passing reason is started again.
        session: the conversation to take up; None to begin anew.
        fork: whether to branch off from that session under a new id.
        template: the project's own prompt template; empty for the usual one.
        spend: what the run as a whole may spend.
        limit_s: wall seconds it may take from its launch, whenever that is; None: until the deadline.
        prompt: what is told instead of contract, feedback and notes; empty for these.
    """

    attempt: AttemptKey
    agent: str
    store: str
    contract: Contract
    feedback: str = ""
    notes: tuple[str, ...] = ()
    deadline: float | None
    sandbox: bool
    launch: int = Field(default=1, ge=1)
    session: Session | None = None
    fork: bool = False
    template: str = ""
    spend: SpendCaps = SpendCaps()
    limit_s: float | None = Field(default=None, gt=0)
    prompt: str = ""


class AgentReport(Value):
    """What one launch of the agent left: facts, not a judgement.

    Attributes:
        exit: how the process ended.
        account: what the agent told of its run; None for an agent without an event stream.
        limit: the limit at which `orch` stopped it, if that is why it ended.
        blocked: why it was not launched: its provider rests, it failed for good in this run, or the budget is passed.
        usage: what it reported to have used; wall time is measured.
        session: a session id for continuation, if it named one.
        session_used: everything that session used so far, where the agent counts like that.
        lost_session: whether the session to take up was not there, so that a fresh one was begun.
        message: its closing words (at most 500 characters).
        stdout: what it printed.
        stderr: what it printed as errors.
    """

    exit: Exit
    account: Account | None = None
    limit: OutcomeKind | None = None
    blocked: Outcome | None = None
    usage: Usage = Usage()
    session: str = ""
    session_used: Usage | None = None
    lost_session: bool = False
    message: str = ""
    stdout: Excerpt = Excerpt()
    stderr: Excerpt = Excerpt()


class Waiting(Value):
    """An attempt rests.

    Attributes:
        attempt: which.
        agent: its agent's spec.
        outcome: why: what became of the last launch.
        until: Unix time at which the agent is launched again.
    """

    attempt: AttemptKey
    agent: str
    outcome: Outcome
    until: float


class TakeSnapshot(Value):
    """Record the workspace's tree in the store, protected paths restored from the baseline.

    Attributes:
        attempt: whose workspace.
        store: the store's key.
        commit: what was checked out.
        contract: names the protected paths.
        exchange: where the tree is published for the other hosts; None: nowhere.
    """

    attempt: AttemptKey
    store: str
    commit: Sha
    contract: Contract
    exchange: Exchange | None = None


class Measure(Value):
    """Measure a commit of the store by the contract in a fresh copy.

    Attributes:
        attempt: names the folder and refs of this measurement.
        store: the store's key.
        commit: the commit to check out.
        tree: its tree; the verdict names it.
        contract: the frozen contract.
        gate: stop at the first rung that does not pass and never reuse an earlier verdict.
        sandbox: whether rungs run in the sandbox.
        exchange: where a commit comes from that this host's store does not have.
    """

    attempt: AttemptKey
    store: str
    commit: Sha
    tree: Sha
    contract: Contract
    gate: bool
    sandbox: bool
    exchange: Exchange | None = None


class YieldSlot(Value):
    """Give the attempt's slot back while it rests; opening its workspace again takes one. Idempotent."""

    attempt: AttemptKey


class CloseAttempt(Value):
    """End what still runs of the attempt, remove its workspace, give its slot back. Idempotent.

    Attributes:
        attempt: which.
        store: the store's key.
        exchange: where its prompts and outputs are published for whoever reads them elsewhere; None: nowhere.
    """

    attempt: AttemptKey
    store: str
    exchange: Exchange | None = None
