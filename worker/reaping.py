"""Let go of what dead runs hold on this host; the engine is asked about each run, never a listing that lags."""

from __future__ import annotations

import asyncio
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from ..activities import reaper
from ..activities.attempts import close_attempt_folder
from ..activities.home import Home


async def dead_runs(client: Client, home: Home) -> frozenset[str]:
    """The runs that hold something here and that the engine does not run (any more)."""
    suspects = await asyncio.to_thread(reaper.suspects, home)
    return frozenset([run for run in sorted(suspects) if await _dead(client, run)])


async def reap(client: Client, home: Home) -> list[reaper.Collected]:
    """Let go of everything that dead runs hold here: processes, workspaces, slots, reservations."""
    dead = await dead_runs(client, home)
    return await asyncio.to_thread(reaper.collect, home, dead)


async def reap_replaced(client: Client, home: Home) -> list[Path]:
    """Let go of attempts of live runs that the engine runs no more: begun anew elsewhere while this host was away."""
    held = await asyncio.to_thread(reaper.unclosed_attempts, home)
    over = [close for close in held if await _dead(client, f"{close.attempt.run}/{close.attempt.name}")]
    for close in over:
        await asyncio.to_thread(close_attempt_folder, home, close)
    return [home.attempt(close.attempt) for close in over]


async def _dead(client: Client, run: str) -> bool:
    try:
        description = await client.get_workflow_handle(run).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return True
        raise
    return description.status is not WorkflowExecutionStatus.RUNNING
