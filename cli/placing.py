"""What can be refused of a run whose attempts may go to other hosts, and what the engine knows of those."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..workflows.errors import RefusedError
from ..workflows.model.goal import GoalRequest
from ..workflows.model.placement import Placement
from ..workflows.model.round.request import RoundRequest
from .durations import parse_duration

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.common import Priority

AWAY = "ORCH_HOST_AWAY"
"""How long a host may be away before its attempts are begun anew elsewhere, e.g. `5m`."""

RPC_S = 10.0


def host_away(environ: Mapping[str, str]) -> float:
    """Seconds for which a host may be away, as the environment says."""
    text = environ.get(AWAY)
    if not text:
        return Placement().away_s
    try:
        return parse_duration(text)
    except ValueError as error:
        raise RefusedError(f"{AWAY}: {error}", hint="give e.g. 5m") from None


def check(request: GoalRequest) -> None:
    """Refuse needs without an artifact store, paths that only this host has, and a store that cannot be written."""
    placement = request.placement
    if not placement.exchange:
        if placement.needs:
            raise RefusedError("--needs without --exchange: attempts stay on this host", hint="give --exchange URL")
        return
    if request.contract.carry:
        raise RefusedError(
            "--carry and --exchange contradict each other: carried paths are on this host only",
            hint="let --setup make them, or leave out --exchange",
        )
    from ..activities.exchange.depot import Depot

    Depot(placement.exchange).probe()


async def refuse_missing_host(temporal: Client, request: GoalRequest) -> None:
    """Refuse needs that no host of the engine has."""
    from ..worker.records import labels_of

    needs = set(request.placement.needs)
    if not needs:
        return
    hosts = [labels_of(identity) for identity in await _pollers(temporal)]
    if not any(needs <= labels for labels in hosts):
        known = sorted({label for labels in hosts for label in labels})
        raise RefusedError(
            f"no host of the engine has {', '.join(sorted(needs))}",
            hint=f"hosts have: {', '.join(known)}" if known else "start a worker there with ORCH_LABELS=LABEL,…",
        )


async def _pollers(temporal: Client) -> list[str]:
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    from ..workflows.host import ORCH_QUEUE

    request = DescribeTaskQueueRequest(
        namespace=temporal.namespace,
        task_queue=TaskQueue(name=ORCH_QUEUE),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await temporal.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=RPC_S))
    return [poller.identity for poller in answer.pollers]


def priority(request: GoalRequest | RoundRequest) -> Priority:
    """A run's place among those that wait for one host: by its priority, then in turn among repositories.

    Its attempts and their steps inherit it. The engine reads it: with keys it holds no word of the path.
    """
    from temporalio.common import Priority

    if request.label:
        return Priority(priority_key=request.priority, fairness_key=request.label)
    slug = re.sub(r"[^a-z0-9]+", "-", PurePath(request.repo).name.lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{request.host}:{request.repo}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Priority(priority_key=request.priority, fairness_key=f"{slug}-{digest}")
