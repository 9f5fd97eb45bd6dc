"""The worker in the background: one per state directory, of the caller's version, seen to poll."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from ..activities import processes
from ..activities.home import Home
from ..workflows.errors import UnreachableError
from ..workflows.host import ORCH_QUEUE, host_queue
from . import background
from .codec import load_codec
from .connection import CONNECT_S, connect
from .records import ProcessRecord, WorkerRecord, read_worker, version
from .state import host_id

START_S = 60.0
"""A worker imports, connects and polls within a second or two; on a busy host it takes longer."""

REVIVE_S = 8.0
"""How long a running worker may take to find a server that came back, before a new one is quicker."""

GRACE_S = 20.0
"""Longer than the worker's own graceful shutdown."""

LOST_S = 2.0
"""How long the winner of two workers may take to be on record after the loser ended."""


async def ensure(home: Home, *, say: Callable[[str], None]) -> WorkerRecord:
    """The polling worker, started or replaced when needed; the caller holds the starters' lock."""
    recorded = read_worker(home)
    if recorded is not None and recorded.alive:
        if fits(home, recorded) and (polling := await _polling(home, recorded, within_s=REVIVE_S)):
            return polling
        other = "of other keys" if recorded.version == version() else f"of orch {recorded.version}"
        say(f"replacing the worker {other}: running agents go on")
    await end(home)
    say("starting the worker")
    pid = _spawn(home)
    started = ProcessRecord(pid=pid, ticks=processes.start_ticks(pid) or 0, version=version())
    if polling := await _polling(home, started, within_s=START_S):
        return polling
    await end(home)
    raise UnreachableError(f"the worker did not start: {_reason(_log(home))}", hint=f"see {_log(home)}")


def fits(home: Home, record: WorkerRecord) -> bool:
    """Whether this worker is of this version and encodes payloads as the caller does."""
    return record.version == version() and record.codec == load_codec(home).mode


async def end(home: Home) -> None:
    """End the worker, gracefully if it lets us; agents outlive it."""
    await background.end(home.engine / "worker.lock", read_worker(home), grace_s=GRACE_S)


async def polls(client: Client, home: Home, record: WorkerRecord) -> bool:
    """Whether this worker asks for workflow tasks and for this host's activities."""
    workflows = client, ORCH_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    activities = client, host_queue(host_id(home)), TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return record.identity in await _pollers(*workflows) and record.identity in await _pollers(*activities)


async def _pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> set[str]:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    try:
        answer = await client.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=CONNECT_S))
    except RPCError:
        return set()
    return {poller.identity for poller in answer.pollers}


async def _polling(home: Home, started: ProcessRecord, *, within_s: float) -> WorkerRecord | None:
    """The worker once it polls, be it `started` or one that came before it; None when that takes too long."""
    client = await connect(home, environ={})
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        record = read_worker(home)
        if record is not None and record.alive:
            if await polls(client, home, record):
                return record
        elif not started.alive:
            until = min(until, time.monotonic() + LOST_S)
        await asyncio.sleep(0.05)
    return None


def _reason(log: Path) -> str:
    """What the log's last line says went wrong."""
    line = background.tail(log, lines=1)
    try:
        said = json.loads(line)
        return str(said.get("error") or said["event"])
    except (ValueError, KeyError, AttributeError):
        return line[-500:] or "no output"


def _spawn(home: Home) -> int:
    argv = (sys.executable, "-P", "-m", "orch.worker.main")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    env = {**kept, "ORCH_STATE": str(home.root)}  # agents find their credentials in the worker's environment
    return background.spawn(processes.Command(argv=argv, cwd=home.engine, env=env), log=_log(home))


def _log(home: Home) -> Path:
    return home.engine / "worker.log"
