"""The steps of a round on its host that are its own: prepare, record."""

from __future__ import annotations

import os
from pathlib import Path

from ..workflows.errors import RefusedError
from ..workflows.model.goal import Baseline, PrepareRun, RunPrepared, SandboxMode
from ..workflows.model.promotion import PromoteMode
from ..workflows.model.reason import Reason, RunReason
from ..workflows.model.round.campaign import NamedFile, Record, RecordRound, RoundRecord
from ..workflows.model.round.plan import RoundPlan
from ..workflows.model.round.request import PrepareRound, RoundPrepared
from ..workflows.rules.round_document import round_document
from ..workflows.rules.round_projection import project_round
from . import artifacts, campaigns, reservations
from .agents.prices import load_prices
from .agents.registry import resolve
from .changes import display
from .commit_tree import CommitTree, is_commit
from .editable import editable_installs
from .effect import effect, in_thread
from .home import Home
from .objects import import_commit
from .repository import Repository, inspect
from .round_facts import frozen_facts, plan_flaws, validator_hashes
from .runs import sandbox_of
from .snapshots import take_baseline
from .store import Store
from .trials.devices import disturbances
from .trials.devices import flaws as device_flaws
from .workspaces.folding import check_names
from .workspaces.registry import choose

PREPARED = "round-prepared.json"
"""What the host found when it prepared the round."""


class Rounds:
    """The round's own activities; each is idempotent and finds what an earlier worker began."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def prepare_round(self, request: PrepareRound) -> RoundPrepared:
        """Check host, repository and plan, and bring the incumbent into the store; a refusal is a value."""
        return await in_thread(prepare_round, self._home, request)

    @effect
    async def record_round(self, request: RecordRound) -> RoundRecord:
        """Write the round's ledger document and advance the campaign's record."""
        return await in_thread(self._record, request)

    def _record(self, request: RecordRound) -> RoundRecord:
        events = artifacts.read_events(self._home.run(request.run) / artifacts.LEDGER)
        return campaigns.record_round(self._home, request, round_document(events, project_round(events)))


def prepare_round(home: Home, request: PrepareRound) -> RoundPrepared:
    """See the activity."""
    folder = home.run(request.run)
    before = artifacts.kept_plan(home, request.run)
    if before is not None and before.digest != request.plan.digest:
        return _refused(_other_plan(request, before))
    if (folder / PREPARED).exists():
        if artifacts.is_closed(home, request.run):
            return _refused(RefusedError(f"{request.run} has ended", hint="give the round another id"))
        return RoundPrepared.model_validate_json((folder / PREPARED).read_bytes())
    artifacts.write_whole(folder / artifacts.PLAN, request.plan.model_dump_json())
    artifacts.keep_request(home, _as_run(request))
    try:
        prepared = _prepared(home, request)
    except RefusedError as error:
        prepared = _refused(error)
    _keep(home, request, prepared)
    return prepared


def _prepared(home: Home, request: PrepareRound) -> RoundPrepared:
    plan = request.plan
    load_prices(home.root)
    choose(home)
    _agents(request)
    sandboxed, warnings = sandbox_of(request.sandbox, drop="start with --no-sandbox")
    warnings += _devices(plan, sandboxed)
    repository = inspect(Path(request.repo))
    warnings += editable_installs(request.path or os.environ.get("PATH", ""), repository.top)
    store = Store.of(home, repository)
    record = campaigns.read_record(home, plan.campaign)
    _unmoved(plan, store, record)
    tree = _incumbent(store, repository, request)
    warnings += _checked(plan, record, tree)
    if (run := campaigns.begin(home, plan, request.run)) != request.run:
        raise RefusedError(f"round {plan.id} was begun as {run}", hint=f"orch watch {run}; or give this one another id")
    if request.promote.mode is PromoteMode.WORKTREE and (holder := _rival(home, request, repository, store)):
        return RoundPrepared(refused=Reason(code=RunReason.TREE_BUSY, data={"run": holder}))
    baseline, dirty = _baseline(store, repository, request)
    return RoundPrepared(
        store=store.key,
        incumbent=plan.incumbent,
        tree=store.tree_of(plan.incumbent),
        baseline=baseline,
        sandbox=sandboxed,
        warnings=(*warnings, *dirty),
    )


def _agents(request: PrepareRound) -> None:
    for lane in request.plan.lanes:
        agent = resolve(lane.agent)
        if missing := agent.adapter.missing(agent.spec, request.path or None):
            raise RefusedError(
                f"lane {lane.id!r}, agent {lane.agent!r}: program {missing!r} is not on this host", hint="install it"
            )


def _devices(plan: RoundPlan, sandbox: bool) -> tuple[str, ...]:  # noqa: FBT001
    """Refuse sets that do not exist here; what is to be known of the others."""
    for devices in plan.devices:
        if flaw := device_flaws(devices, sandbox=sandbox):
            raise RefusedError(f"device set {devices.name!r}: {flaw}", hint="name what this host has")
    return tuple(f"{why} ({mend})" for why, mend in disturbances(plan.devices))


def _unmoved(plan: RoundPlan, store: Store, record: Record) -> None:
    """Refuse a plan whose campaign stands elsewhere by now, belongs to another repository, or has run this round."""
    state = record.state
    if state.store and state.store != store.key:
        raise RefusedError(
            f"the campaign {plan.campaign!r} belongs to another repository ({state.store})",
            hint=f"give the campaign another id; of a repository that moved, write {store.key} into its state.json",
        )
    if ran := dict(state.rounds).get(plan.id):
        raise RefusedError(f"round {plan.id} has run, with the digest {ran}", hint="give this one another id")
    if state.incumbent is not None and state.incumbent != plan.incumbent:
        raise RefusedError(
            f"the incumbent moved: the campaign stands at {state.incumbent}, the plan starts from {plan.incumbent}",
            hint="start the round's file again: it is compiled anew",
        )


def _incumbent(store: Store, repository: Repository, request: PrepareRound) -> CommitTree:
    """The incumbent, in the store and pinned for the run."""
    commit = request.plan.incumbent
    if not is_commit(store.git, commit):
        if not is_commit(repository.git, commit):
            raise RefusedError(
                f"{commit} is no commit of {request.repo}", hint="fetch it, or mend `incumbent:` in the campaign's file"
            )
        with store.lock():
            import_commit(store.git, repository, commit)
    check_names(store, commit)
    store.pin(f"refs/orch/{request.run}/incumbent", commit)
    return CommitTree(store.git, commit)


def _checked(plan: RoundPlan, record: Record, tree: CommitTree) -> tuple[str, ...]:
    """Check the plan once more, by what is on record now; return its warnings."""
    named = [NamedFile(path=file.path, sha256=file.sha256) for file in plan.gates.validator]
    for _, why, mend in validator_hashes(named, tree)[1]:
        raise RefusedError(why, hint=mend)
    found = plan_flaws(frozen_facts(plan, record, tree))
    for flaw in found:
        if not flaw.warning:
            raise RefusedError(flaw.message, hint=flaw.mend)
    return tuple(f"{flaw.message} ({flaw.mend})" for flaw in found)


def _rival(home: Home, request: PrepareRound, repository: Repository, store: Store) -> str:
    """Reserve the tree that is promoted into; who holds it already, if so."""
    if repository.operation:
        raise RefusedError(f"a {repository.operation} is in progress in {request.repo}", hint="finish or abort it")
    holder = reservations.reserve(home, store, repository.top, request.run)
    return "" if holder == request.run else holder


def _baseline(store: Store, repository: Repository, request: PrepareRound) -> tuple[str | None, tuple[str, ...]]:
    """The user's tree as it is, where something is promoted into it, and a warning when it is not the incumbent's."""
    if request.promote.mode is not PromoteMode.WORKTREE:
        return None, ()
    commit = take_baseline(store, repository, request.run).commit
    changed = store.changed(request.plan.incumbent, commit)
    if not changed:
        return commit, ()
    where = display(changed[0]) if len(changed) == 1 else f"{len(changed)} paths"
    warning = f"the working tree is not the incumbent's in {where}: a promotion into it must change nothing there"
    return commit, (warning,)


def _as_run(request: PrepareRound) -> PrepareRun:
    """The request in the shape that places, secrets and the collection read of every run."""
    return PrepareRun(
        run=request.run,
        repo=request.repo,
        contract=request.plan.contract,
        agents=tuple(dict.fromkeys(lane.agent for lane in request.plan.lanes)),
        sandbox=request.sandbox if request.sandbox is SandboxMode.OFF else SandboxMode.REQUIRED,
        promote=request.promote,
        path=request.path,
        host=request.host,
    )


def _keep(home: Home, request: PrepareRound, prepared: RoundPrepared) -> None:
    """Keep what was found, in the shape of every run as well; the round's own comes last: from then on it stands."""
    start = None
    if prepared.incumbent and prepared.tree:
        start = Baseline(commit=prepared.incumbent, tree=prepared.tree)
    run = RunPrepared(
        store=prepared.store,
        baseline=start,
        contract=request.plan.contract,
        sandbox=prepared.sandbox,
        warnings=prepared.warnings,
        refused=prepared.refused,
    )
    artifacts.write_whole(home.run(request.run) / artifacts.PREPARED, run.model_dump_json())
    artifacts.write_whole(home.run(request.run) / PREPARED, prepared.model_dump_json())


def _other_plan(request: PrepareRound, before: RoundPlan) -> RefusedError:
    return RefusedError(
        f"{request.run} was started with another plan: its digest is {before.digest}, this one's {request.plan.digest}",
        hint="give the changed plan another round id",
    )


def _refused(error: RefusedError) -> RoundPrepared:
    data = {"detail": error.message, "hint": error.hint}
    return RoundPrepared(refused=Reason(code=RunReason.PREFLIGHT_FAILED, data=dict(data)))
