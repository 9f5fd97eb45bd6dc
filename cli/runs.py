"""What a client asks of runs: start, page through the ledger, view, update, cancel.

Every kind of run answers to the query `ledger`; a goal run besides to the updates `decide`, `extend` and `add_note`.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from ..workflows.errors import RefusedError, UnreachableError
from ..workflows.host import ORCH_QUEUE
from ..workflows.model.base import Value
from ..workflows.model.event import Event, LedgerPage
from ..workflows.model.goal import GoalRequest, is_url
from ..workflows.model.reason import Reason, RunReason
from ..workflows.model.round.request import RoundRequest
from ..workflows.model.view import RunStatus
from .halted import halted
from .link import PATIENCE, RPC_TIMEOUT, Link
from .listing import has_ended, list_runs, memo, read_ledger, search_attributes
from .nearest import nearest
from .placing import priority, refuse_missing_host
from .plan import GoalPlan
from .talk import one_line
from .views import AnyView, is_round, view_of

V = TypeVar("V")

_UPDATE_TIMEOUT = timedelta(seconds=15)
_CANCELLED = {WorkflowExecutionStatus.CANCELED, WorkflowExecutionStatus.TERMINATED}
_OPEN = {WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW, None}


async def start(link: Link, plan: GoalPlan) -> str:
    """Start the planned run; RefusedError when its id is taken or its tree is promised to another run."""
    from ..activities.agents import secrets
    from ..activities.agents.registry import secret_names
    from ..worker.state import host_id

    temporal = await link.temporal()
    request = plan.request.model_copy(update={"host": host_id(link.home)})
    await refuse_busy_tree(link, request)
    await refuse_missing_host(temporal, request)
    folder = Path.cwd() if is_url(request.repo) else Path(request.repo)
    declared = await asyncio.to_thread(secrets.resolve, request.contract.secrets, os.environ, folder)
    names = secret_names((*request.agents, request.sign_off))
    kept = secrets.keep(link.home, request.run, names, os.environ, declared)
    try:
        await temporal.start_workflow(
            "Goal",
            request,
            id=request.run,
            task_queue=ORCH_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            search_attributes=search_attributes(request),
            memo=memo(request),
            static_summary=one_line(request.contract.goal.splitlines()[0], 60),
            priority=priority(request),
        )
    except WorkflowAlreadyStartedError:
        secrets.put_back(link.home, request.run, kept)
        raise RefusedError(f"a run {request.run} exists", hint="choose another --id, or leave it out") from None
    return request.run


async def refuse_busy_tree(link: Link, request: GoalRequest | RoundRequest) -> None:
    """Refuse a second run that promotes into the same tree; the host's own reservation has the last word."""
    if request.promote.mode != "worktree":
        return
    for row in await list_runs(link, live=True):
        if row.repo != request.repo or row.id == request.run:
            continue
        if (row.promote or (await view(link, row.id)).promote) == "worktree":
            raise RefusedError(
                f"{row.id} runs and promotes into the same tree, {request.repo}",
                hint=f"wait for it (orch watch {row.id}), cancel it, or start with --promote none or branch:NAME",
            )


async def ledger_page(link: Link, run: str, since: int, *, patience: float = PATIENCE) -> LedgerPage:
    """Events after `since`: from the run's folder once it has ended, else from the live run."""
    on_disk = read_ledger(link.home, run)
    kept = LedgerPage(events=tuple(event for event in on_disk if event.seq > since), ended=has_ended(on_disk))
    if kept.ended:
        return kept
    if link.unused:
        raise await no_such_run(link, run)
    try:
        return await _asked(link, run, since, patience=0)
    except UnreachableError:
        if await closed_as(link, run):  # it broke before its last word, and no worker can make it speak
            return kept.model_copy(update={"ended": True})
        if why := await halted(link, run):
            raise why from None
    try:
        return await _asked(link, run, since, patience=patience)
    except UnreachableError:
        if on_disk:
            return kept
        raise


async def _asked(link: Link, run: str, since: int, *, patience: float) -> LedgerPage:
    try:
        return await link.call(
            lambda temporal: temporal.get_workflow_handle(run).query(
                "ledger", since, result_type=LedgerPage, rpc_timeout=RPC_TIMEOUT
            ),
            patience=patience,
        )
    except WorkflowQueryFailedError as error:
        raise UnreachableError(f"{run} does not answer: {one_line(error.message, 200)}") from error
    except RPCError as error:
        raise await refusal(link, run, error) from error


async def view(link: Link, run: str) -> AnyView:
    """The run as it stands now."""
    found = await _view(link, run)
    if found.status not in {RunStatus.RUNNING, RunStatus.WAITING}:
        return found
    status = await closed_as(link, run)
    if status is None:
        return found
    found = await _view(link, run)
    return found if found.ended_at else await _broken_off(link, found, status)


async def _view(link: Link, run: str) -> AnyView:
    collected = await all_events(link, run)
    found = view_of(collected)
    return found if collected else found.model_copy(update={"id": run})


async def all_events(link: Link, run: str) -> list[Event]:
    """The run's ledger up to now."""
    collected: list[Event] = []
    while True:
        page = await ledger_page(link, run, len(collected))
        collected += page.events
        if page.ended or not page.events:
            return collected


async def _broken_off(link: Link, found: AnyView, status: RunStatus) -> AnyView:
    """A run whose workflow closed without its last word: terminated from outside, or a bug."""
    code = RunReason.CANCELLED if status is RunStatus.CANCELLED else RunReason.INTERNAL
    detail = ""
    try:
        await link.call(lambda temporal: temporal.get_workflow_handle(found.id).result(rpc_timeout=RPC_TIMEOUT))
    except (WorkflowFailureError, RPCError, UnreachableError) as error:
        detail = str(error.__cause__ or error)
    reason: Reason[RunReason] = Reason(code=code, data={"detail": one_line(detail, 300)})
    return found.model_copy(update={"status": status, "reason": reason})


async def closed_as(link: Link, run: str) -> RunStatus | None:
    """How the run's workflow closed; None while it is open or nobody can tell."""
    try:
        described = await link.call(
            lambda temporal: temporal.get_workflow_handle(run).describe(rpc_timeout=RPC_TIMEOUT), patience=0
        )
    except (UnreachableError, RPCError):
        return None
    if described.status in _OPEN:
        return None
    return RunStatus.CANCELLED if described.status in _CANCELLED else RunStatus.FAILED


async def update(link: Link, run: str, name: str, value: Value, *, result: type[V]) -> V:
    """Send an update and return its answer; a repeated call is answered once. A refusal is a RefusedError."""
    await _require_live(link, run)
    update_id = uuid.uuid4().hex
    try:
        return await link.call(
            lambda temporal: temporal.get_workflow_handle(run).execute_update(
                name, value, id=update_id, result_type=result, rpc_timeout=_UPDATE_TIMEOUT
            )
        )
    except WorkflowUpdateFailedError as error:
        if is_round((await ledger_page(link, run, 0)).events):
            hint = f"orch cancel {run} ends it; what comes next is another round"
            raise RefusedError(f"{run} is a round: its plan is frozen", hint=hint) from error
        raise RefusedError(f"{run}: {_said(error)}", hint=f"orch show {run}") from error
    except RPCError as error:
        raise await refusal(link, run, error) from error


def _said(error: WorkflowUpdateFailedError) -> str:
    """A validator's own words, without the name of its type."""
    return error.cause.message if isinstance(error.cause, FailureError) else str(error.cause or error)


async def cancel(link: Link, run: str) -> None:
    """Ask the run to end and clean up."""
    await _require_live(link, run)
    try:
        await link.call(lambda temporal: temporal.get_workflow_handle(run).cancel(rpc_timeout=RPC_TIMEOUT))
    except RPCError as error:
        raise await refusal(link, run, error) from error


async def _require_live(link: Link, run: str) -> None:
    if has_ended(read_ledger(link.home, run)):
        raise ended(run)
    if link.unused:
        raise await no_such_run(link, run)


async def refusal(link: Link, run: str, error: RPCError) -> Exception:
    """What an engine's `no` means to the user; anything else is the error itself."""
    if error.status is not RPCStatusCode.NOT_FOUND:
        return error
    return ended(run) if "already completed" in error.message else await no_such_run(link, run)


def ended(run: str) -> RefusedError:
    """The refusal for a run that is over."""
    return RefusedError(f"{run} has ended", hint=f"orch show {run}")


async def no_such_run(link: Link, run: str) -> RefusedError:
    """The refusal for an unknown id, with the nearest known one."""
    close = nearest(run, [row.id for row in await list_runs(link)])
    return RefusedError(f"no run {run}", hint=f"did you mean {close}?" if close else "`orch list` shows all runs")
