"""Pin an attempt's activities to a host, and tell a lost host from a failed step."""

from __future__ import annotations

from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType

ORCH_QUEUE = "orch"
"""Workflows and host-free activities."""


def host_queue(host: str) -> str:
    """The task queue of what needs this host's disk."""
    return f"orch-host-{host}"


def host_lost(error: ActivityError) -> bool:
    """Whether an activity failed because its host went away, not because its step failed."""
    cause = error.cause
    return isinstance(cause, TimeoutError) and cause.type in {TimeoutType.SCHEDULE_TO_START, TimeoutType.HEARTBEAT}
