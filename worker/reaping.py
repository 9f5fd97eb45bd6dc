"""Let go of what dead runs hold on this host; the engine is asked about each run, never a listing that lags."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from ..activities.attempts import close_attempt_folder
from ..activities.collecting import plan, runs, trash
from ..activities.collecting.disk import free_bytes
from ..activities.collecting.found import Collected
from ..activities.exchange.unclosed import unclosed_attempts
from ..activities.home import Home
from ..workflows.errors import RefusedError

FLOOR_BYTES = 2 << 30
"""With less than this free beside the state directory, what can be made again at any time goes by itself."""

_SWEEPER = ThreadPoolExecutor(1, thread_name_prefix="sweeper")
"""A thread of its own: its low priority is nobody else's."""

log = structlog.get_logger()


async def dead_runs(client: Client, home: Home, *, pins: bool = False) -> frozenset[str]:
    """The runs that hold something here (with `pins`: also nothing but refs) and that the engine does not run."""
    suspects = await asyncio.to_thread(plan.suspects, home, pins=pins)
    return frozenset([run for run in sorted(suspects) if await _dead(client, run)])


async def reap(client: Client, home: Home) -> list[Collected]:
    """Let go of everything that dead runs hold here: processes, workspaces, slots, reservations."""
    dead = await dead_runs(client, home)
    return await asyncio.to_thread(plan.collect, home, dead, finders=(runs.held,))


async def keep_tidy(home: Home) -> None:
    """Delete what was renamed away; when the disk is nearly full, also what can be made again. Never a result."""
    await asyncio.get_running_loop().run_in_executor(_SWEEPER, trash.sweep, home)
    missing = FLOOR_BYTES - free_bytes(home.root)
    if missing <= 0:
        return
    policy = plan.Policy(free=FLOOR_BYTES)
    try:
        found = await asyncio.to_thread(plan.collect, home, frozenset(), policy, plan.CACHES)
    except RefusedError:
        return  # somebody collects already
    for item in found:
        log.info("cache_collected", kind=item.kind, path=str(item.path), bytes=item.bytes, flaw=item.flaw)


async def reap_replaced(client: Client, home: Home) -> list[Path]:
    """Let go of attempts of live runs that the engine runs no more: begun anew elsewhere while this host was away."""
    held = await asyncio.to_thread(unclosed_attempts, home)
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
