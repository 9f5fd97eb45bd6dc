"""A round plan's file resolved to a request, and the round started; the same plan again is attached to."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.client import WorkflowExecutionStatus
from temporalio.common import (
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError

from ..activities.campaigns import begun
from ..activities.home import Home
from ..activities.repository import Repository, inspect
from ..workflows.errors import RefusedError
from ..workflows.host import ORCH_QUEUE
from ..workflows.model.contract import Rung
from ..workflows.model.goal import GoalRequest, SandboxMode
from ..workflows.model.round.plan import RoundPlan
from ..workflows.model.round.request import RoundRequest
from ..workflows.model.view import RunStatus
from . import preflight
from .checked import CheckedRound
from .link import RPC_TIMEOUT, Link
from .listing import KIND, REPO, STATUS
from .placing import priority
from .plan import promote_target
from .round_options import RoundOptions
from .round_plan import check_round
from .runs import refuse_busy_tree

KIND_OF_RUN = "round"
DIGEST = "digest"
"""In the memo: the plan's digest, by which a second start knows the first one's plan."""


@dataclass(frozen=True)
class RoundStart:
    """What would be started.

    Attributes:
        request: the resolved request; its `host` is filled in when it is started.
        checked: the plan's file, with warnings and facts.
        plan: the frozen plan.
    """

    request: RoundRequest
    checked: CheckedRound
    plan: RoundPlan


def resolve_round(options: RoundOptions, home: Home) -> RoundStart:
    """Resolve and check; RefusedError before anything is created or started."""
    repository = inspect(options.repo)
    checked = check_round(options.plan, repository, home, sandbox=options.sandbox)
    if checked.plan is None:
        raise checked.error()
    request = request_of(checked.plan, options, repository, home)
    preflight_round(request, repository, home)
    return RoundStart(request, checked, checked.plan)


def request_of(plan: RoundPlan, options: RoundOptions, repository: Repository, home: Home) -> RoundRequest:
    """What starts the round of a frozen plan, by the id it was begun with; RefusedError when the options are none."""
    try:
        request = RoundRequest(
            run=f"round-{plan.campaign}-{plan.id}",
            repo=str(repository.top),
            host="",
            plan=plan,
            sandbox=SandboxMode.REQUIRED if options.sandbox else SandboxMode.OFF,
            promote=promote_target(options.promote),
            path=os.environ.get("PATH", ""),
            priority=options.priority,
        )
    except ValidationError as error:
        raise preflight.invalid(error) from None
    sealed = _sealed(request, home)
    return sealed.model_copy(update={"run": begun(home, plan) or sealed.run})


async def start_round(link: Link, start: RoundStart) -> str:
    """Start the round, or attach to it where this very plan runs already; return its id.

    RefusedError when it has ended, when its id was used for another plan, or when its tree is promised to another run.
    """
    from ..activities.agents import secrets
    from ..activities.agents.registry import secret_names
    from ..worker.state import host_id

    temporal = await link.temporal()
    request = start.request.model_copy(update={"host": host_id(link.home)})
    await asyncio.to_thread(refuse_other_plan, link.home, request)
    await refuse_busy_tree(link, request)
    names = secret_names(lane.agent for lane in start.plan.lanes)
    kept = secrets.keep(link.home, request.run, names, os.environ)
    about = f"round {start.plan.id} of campaign {start.plan.campaign}"
    try:
        await temporal.start_workflow(
            "Round",
            request,
            id=request.run,
            task_queue=ORCH_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            search_attributes=_search_attributes(request),
            memo=_memo(request, about),
            static_summary=about,
            priority=priority(request),
        )
    except WorkflowAlreadyStartedError:
        secrets.put_back(link.home, request.run, kept)
        await _attach(link, request)
    return request.run


def refuse_other_plan(home: Home, request: RoundRequest) -> None:
    """Refuse what lies in the state directory as a round that has ended, or that had another plan."""
    from ..activities.artifacts import is_closed, kept_plan

    before = kept_plan(home, request.run)
    if before is not None and before.digest != request.plan.digest:
        raise _other(request, before.digest)
    if before is not None and is_closed(home, request.run):
        raise _ended(request)


async def _attach(link: Link, request: RoundRequest) -> None:
    """Return when the run of this id is live and has this very plan."""
    handle = (await link.temporal()).get_workflow_handle(request.run)
    described = await link.call(lambda _temporal: handle.describe(rpc_timeout=RPC_TIMEOUT))
    digest = str((await described.memo()).get(DIGEST, ""))
    if digest != request.plan.digest:
        raise _other(request, digest)
    if described.status is not WorkflowExecutionStatus.RUNNING:
        raise _ended(request)
    link.say(f"{request.run} runs already, with this very plan")


def _other(request: RoundRequest, digest: str) -> RefusedError:
    return RefusedError(
        f"{request.run} was started with another plan: its digest is {digest}, this one's {request.plan.digest}",
        hint="give the changed plan another round id",
    )


def _ended(request: RoundRequest) -> RefusedError:
    return RefusedError(f"{request.run} has ended", hint=f"orch show {request.run}; or give the round another id")


def preflight_round(request: RoundRequest, repository: Repository, home: Home) -> None:
    """Refuse what is missing on this host, by the checks of a goal run."""
    preflight.round_sandbox(request.sandbox)
    commands = request.plan.commands
    lines = [getattr(commands, name) for name in ("probe", "build", "smoke", "benchmark", "validate_")]
    rungs = tuple(Rung(name=f"command {i}", run=one.run) for i, one in enumerate(filter(None, lines), 1))
    asked = GoalRequest(
        run=request.run,
        repo=request.repo,
        host="",
        contract=request.plan.contract.model_copy(update={"rungs": rungs}),
        agents=tuple(dict.fromkeys(lane.agent for lane in request.plan.lanes)),
        path=request.path,
    )
    preflight.programs(asked)
    preflight.usable(asked)
    preflight.operation(repository, request.promote)
    preflight.space(lambda: preflight.tree_bytes(repository), home.root)


def _sealed(request: RoundRequest, home: Home) -> RoundRequest:
    """The request as the engine may see its id and search attributes: with encryption on they hold no words."""
    from ..worker.keys import load_keys

    ring = load_keys(home)
    if ring is None:
        return request
    return request.model_copy(
        update={"run": f"round-{ring.label(request.run)}", "label": ring.label(request.repo)},
    )


def _search_attributes(request: RoundRequest) -> TypedSearchAttributes:
    pairs = ((KIND, KIND_OF_RUN), (REPO, request.label or request.repo), (STATUS, RunStatus.RUNNING.value))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


def _memo(request: RoundRequest, about: str) -> dict[str, str]:
    noted = {"goal": about, "promote": str(request.promote), DIGEST: request.plan.digest}
    return {**noted, "repo": request.repo} if request.label else noted
