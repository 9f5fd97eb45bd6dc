"""What tests do with a measurement that is under way."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails

from orch.activities.trials.leases import take


def is_free(name: str) -> bool:
    """Whether nobody holds the lease of a device."""
    descriptor = take(name)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


async def let_through(turnstile: Any, trial: Any, *runs: int) -> None:
    """Let runs go on as they come, by their ordinals."""
    for run in runs:
        await turnstile.arrived(trial, run)
        turnstile.release()


async def cancelled(running: asyncio.Task[Any], environment: Any, details: ActivityCancellationDetails) -> None:
    """Cancel the activity in this environment, and wait for its end."""
    environment.cancel(cancellation_details=details)
    with pytest.raises(asyncio.CancelledError):
        await running
