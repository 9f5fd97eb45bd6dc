"""Which worker runs what: runs on the shared queue, attempts and everything with effects on this host's own queue.

An attempt shares the queue of its activities: the engine then hands the next step over with the answer to the last one
(eager activities) instead of matching it anew. One that may go to any host is on the shared queue: it outlives a host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import combinations
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from ..workflows.effects import claim_host
from ..workflows.host import ORCH_QUEUE, claim_queue, host_queue
from .records import version
from .room import when_there_is_room
from .settings import Settings
from .state import host_id

GRACE = timedelta(seconds=3)
"""For short steps to finish; long ones then detach and are attached to again, so waiting longer gains nothing."""

BEAT = timedelta(seconds=2)
"""A cancellation reaches an activity with its next heartbeat, so beats must not be held back for long."""

MANY = 1000
"""Waiting for a slot is an activity too: a limit here could keep those that hold slots from going on."""

PASSED_THROUGH = (
    "pydantic", "pydantic_core",
    "orch.workflows.model", "orch.workflows.effects", "orch.workflows.host", "orch.workflows.errors",
)  # fmt: skip
"""Loaded once and shared with workflows: values and signatures. Workflows and `rules` are not among them: the sandbox
polices them, at the price of importing them anew for each workflow."""


BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What ends a run as failed: a task that fails for ever could not even be cancelled.

A history that does not fit the code is not among them: the run waits for a worker that knows it.
"""


def workflow_runner() -> SandboxedWorkflowRunner:
    """The sandbox that workflows run in."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def make_workers(client: Client, settings: Settings) -> list[Worker]:
    """The workers of one process, not started: the shared queue's runs, this host's attempts and activities, claims.

    All carry the client's identity, and the code's version: else each start would read and hash all that is loaded.
    """
    from ..activities.registry import make_activities
    from ..workflows.registry import ATTEMPTS, WORKFLOWS

    activities = make_activities(settings.home, settings.slots)
    runs = Worker(
        client,
        task_queue=ORCH_QUEUE,
        build_id=version(),
        workflows=list(WORKFLOWS),
        workflow_runner=workflow_runner(),
        workflow_failure_exception_types=BUGS,
        max_concurrent_workflow_tasks=16,
        max_cached_workflows=200,
        graceful_shutdown_timeout=GRACE,
    )
    host = Worker(
        client,
        task_queue=host_queue(host_id(settings.home)),
        build_id=version(),
        workflows=list(ATTEMPTS),
        workflow_runner=workflow_runner(),
        workflow_failure_exception_types=BUGS,
        max_concurrent_workflow_tasks=16,
        max_cached_workflows=200,
        activities=activities,
        max_concurrent_activities=MANY,
        max_heartbeat_throttle_interval=BEAT,
        default_heartbeat_throttle_interval=BEAT,
        graceful_shutdown_timeout=GRACE,
    )
    return [runs, host, *claim_workers(client, settings, activities)]


def claim_workers(client: Client, settings: Settings, activities: Sequence[Callable[..., Any]]) -> list[Worker]:
    """One worker for each set of this host's labels: it asks for an attempt only while the host has room."""
    claims = [activity for activity in activities if activity.__name__ == claim_host.__name__]
    sets = [
        labels for size in range(len(settings.labels) + 1) for labels in combinations(sorted(settings.labels), size)
    ]
    return [
        Worker(
            client,
            task_queue=claim_queue(labels),
            build_id=version(),
            activities=claims,
            tuner=when_there_is_room(settings),
            disable_eager_activity_execution=True,
            graceful_shutdown_timeout=GRACE,
        )
        for labels in sets
    ]
