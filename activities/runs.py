"""The steps of a run on its host: prepare, move the head, promote, close."""

from __future__ import annotations

import os
from pathlib import Path

from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey, CloseAttempt
from ..workflows.model.contract import SecretUse
from ..workflows.model.goal import (
    Baseline,
    CloseRun,
    KeepEvents,
    MoveHead,
    PrepareRun,
    RunPrepared,
    SandboxMode,
    is_url,
)
from ..workflows.model.placement import Exchange
from ..workflows.model.promotion import Promote, PromoteMode, Promotion
from ..workflows.model.reason import Reason, RunReason
from . import artifacts, promotion, reservations
from .agents import secrets
from .agents.prices import load_prices
from .agents.registry import resolve
from .attempts import close_attempt_folder
from .editable import editable_installs
from .effect import effect, in_thread
from .exchange.bundles import bring, publish, publish_baseline
from .exchange.depot import Depot
from .home import Home
from .remote import remote, remote_baseline
from .repository import Repository, inspect
from .sandbox import guard
from .sandbox.registry import chosen, probe
from .snapshots import take_baseline
from .store import Store
from .workspaces.folding import check_names
from .workspaces.registry import choose


class Runs:
    """The run's activities; each is idempotent and finds what an earlier worker began."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def prepare_run(self, request: PrepareRun) -> RunPrepared:
        """Check the repository, take the baseline into the store, reserve the tree; a refusal is a value."""
        return await in_thread(self._prepare, request)

    @effect
    async def move_head(self, request: MoveHead) -> None:
        """Point the run's head in the store at a commit, and keep the newest events on disk."""
        await in_thread(self._move_head, request)

    @effect
    async def promote(self, request: Promote) -> Promotion:
        """Move the user's tree or a branch to the result, all or nothing; a refusal is a value."""
        return await in_thread(promotion.promote, self._home, request)

    @effect
    async def keep_events(self, request: KeepEvents) -> None:
        """Append to the ledger in the run's folder what it does not have yet."""
        await in_thread(artifacts.append_events, self._home, request.run, request.events)

    @effect
    async def close_run(self, request: CloseRun) -> None:
        """Write the ledger to the run's folder and let go of what the run reserved."""
        await in_thread(close_run_folder, self._home, request)

    def _prepare(self, request: PrepareRun) -> RunPrepared:
        if kept := artifacts.kept_prepared(self._home, request.run):
            return kept
        artifacts.keep_request(self._home, request)
        try:
            prepared = self._prepared(request)
        except RefusedError as error:
            prepared = _refused(request, RunReason.PREFLIGHT_FAILED, detail=error.message, hint=error.hint)
        artifacts.write_whole(self._home.run(request.run) / artifacts.PREPARED, prepared.model_dump_json())
        return prepared

    def _prepared(self, request: PrepareRun) -> RunPrepared:
        load_prices(self._home.root)
        secrets.given(self._home, request.run, SecretUse.AGENT)  # where nobody looked them up, a refusal comes now
        choose(self._home)
        for spec in request.agents:
            agent = resolve(spec)
            if missing := agent.adapter.missing(agent.spec, request.path or None):
                raise RefusedError(f"agent {spec!r}: program {missing!r} is not on this host")
        sandboxed, warnings = sandbox_of(request.sandbox)
        if is_url(request.repo):
            store, baseline = self._fetched(request)
        else:
            repository = inspect(Path(request.repo))
            warnings += editable_installs(request.path or os.environ.get("PATH", ""), repository.top)
            store = Store.of(self._home, repository)
            if holder := self._rival(request, repository, store):
                return _refused(request, RunReason.TREE_BUSY, run=holder)
            baseline = take_baseline(store, repository, request.run, carried=request.contract.carry)
        check_names(store, baseline.commit)
        if request.exchange:
            Depot(request.exchange).probe()
            publish_baseline(store, Exchange(url=request.exchange, key=f"{store.key}.{request.host}"), baseline.commit)
        return RunPrepared(
            store=store.key,
            baseline=baseline,
            contract=request.contract,
            sandbox=sandboxed,
            warnings=warnings,
        )

    def _fetched(self, request: PrepareRun) -> tuple[Store, Baseline]:
        if request.promote.mode is not PromoteMode.NONE:
            raise RefusedError(f"{request.repo} has no working tree here", hint="start with --promote none")
        return remote_baseline(self._home, remote(request.repo, request.ref), request.run)

    def _rival(self, request: PrepareRun, repository: Repository, store: Store) -> str:
        """Reserve the tree that is promoted into; who holds it already, if so."""
        if request.promote.mode is not PromoteMode.WORKTREE:
            return ""
        if repository.operation:
            raise RefusedError(f"a {repository.operation} is in progress in {request.repo}")
        holder = reservations.reserve(self._home, store, repository.top, request.run)
        return "" if holder == request.run else holder

    def _move_head(self, request: MoveHead) -> None:
        store = Store(self._home, request.store)
        if request.exchange is not None:
            bring(store, request.exchange, request.commit, pin=f"refs/orch/{request.run}/head")
            publish(store, request.exchange, request.commit, base=request.base)
        store.pin(f"refs/orch/{request.run}/head", request.commit)
        artifacts.append_events(self._home, request.run, request.events)


def close_run_folder(home: Home, request: CloseRun) -> None:
    """Keep the last events and let go of everything a run held. Idempotent, whatever is left of it."""
    artifacts.append_events(home, request.run, request.events)
    if request.store:
        store = Store(home, request.store)
        for folder in sorted((home.run(request.run) / "attempts").glob("i*-c*-b*")):
            close_attempt_folder(home, CloseAttempt(attempt=attempt_key(request.run, folder.name), store=request.store))
        reservations.release(store, Path(request.repo), request.run)
    secrets.drop(home, request.run)
    artifacts.mark_closed(home, request.run)


def attempt_key(run: str, name: str) -> AttemptKey:
    """An attempt's key, by its name."""
    iteration, candidate, binding = (int(part[1:]) for part in name.split("-"))
    return AttemptKey(run=run, iteration=iteration, candidate=candidate, binding=binding)


def sandbox_of(mode: SandboxMode, *, drop: str = "drop --sandbox") -> tuple[bool, tuple[str, ...]]:
    """Whether commands run in the sandbox here, with warnings; RefusedError where it is required and does not work.

    `drop` says how to do without.
    """
    if mode is SandboxMode.OFF:
        return False, ("the sandbox is off (--no-sandbox): agents and checks can read and write whatever you can",)
    flaw = probe()
    if flaw is None:
        open_by = guard.flaw(chosen())
        return True, (f"{guard.OPEN_ENGINE} ({open_by})",) if open_by else ()
    if mode is SandboxMode.REQUIRED:
        raise RefusedError(f"the sandbox does not work here: {flaw.why}", hint=f"{flaw.mend}; or {drop}")
    return False, (f"no sandbox here ({flaw.why}): agents and checks can read and write whatever you can",)


def _refused(request: PrepareRun, code: RunReason, **data: str) -> RunPrepared:
    return RunPrepared(contract=request.contract, refused=Reason(code=code, data=dict(data)))
