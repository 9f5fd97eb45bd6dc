"""Pin an attempt's activities to a host, and tell a lost host from a failed step."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio import exceptions
from temporalio.exceptions import ActivityError, TimeoutType

ORCH_QUEUE = "orch"
"""Workflows and host-free activities."""


def host_queue(host: str) -> str:
    """The task queue of what needs this host's disk."""
    return f"orch-host-{host}"


def claim_queue(labels: Iterable[str] = ()) -> str:
    """The task queue of attempts that need a host with all of these labels; every host with them serves it."""
    return "-".join(["orch-claim", "+".join(sorted(set(labels)))]).rstrip("-")


def host_lost(error: ActivityError) -> bool:
    """Whether an activity failed because its host went away, not because its step failed."""
    cause = error.cause
    away = {TimeoutType.SCHEDULE_TO_START, TimeoutType.HEARTBEAT}
    return isinstance(cause, exceptions.TimeoutError) and cause.type in away
