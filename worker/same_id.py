"""Two hosts with one id: a copied state directory would take the other host's work, so it is refused.

On disk stands which machine and which folder the id belongs to. What that cannot tell (machines made of one image) the
engine does: somebody else who asks for the work of this id while this worker does.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from ..activities.home import Home
from ..workflows.errors import RefusedError
from ..workflows.host import host_queue
from ..workflows.model.base import Value
from .state import host_id, write_aside

MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))

LOOK_S = 5.0
RPC_S = 5.0
WATCHED_S = 180.0
"""For this long after its start a worker looks for another: who came later gives way, who was there goes on."""


class Abode(Value):
    """Where a host id lives.

    Attributes:
        host: the id.
        machine: the machine's id; empty where it has none.
        path: the state directory.
    """

    host: str
    machine: str
    path: str


def settle(home: Home, *, machine: str | None = None) -> None:
    """Note where this host id lives; RefusedError when that is somewhere else, too.

    A directory that was moved on its machine keeps its id; `machine` is this machine's id, for tests.
    """
    path = home.root / "host.json"
    here = Abode(host=host_id(home), machine=_machine() if machine is None else machine, path=str(home.root.resolve()))
    try:
        known = Abode.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        known = None
    if known is not None and known.host == here.host:
        if known.machine and here.machine and known.machine != here.machine:
            raise _refused(home, f"the state directory {here.path} belongs to another machine")
        if known.path != here.path and _id_at(Path(known.path)) == here.host:
            raise _refused(home, f"the state directory {here.path} is a copy of {known.path}")
    if known != here:
        write_aside(path, here.model_dump_json(indent=2) + "\n")


async def watch(client: Client, home: Home, identity: str) -> None:
    """Return once nobody else asks for this host's work; RefusedError when somebody does."""
    until = asyncio.get_running_loop().time() + WATCHED_S
    queue = host_queue(host_id(home))
    first = 0.0
    while asyncio.get_running_loop().time() < until:
        polled = await _polled(client, queue)
        first = first or polled.get(identity, 0.0)
        others = sorted(who for who, when in polled.items() if first and who != identity and when > first)
        if others:
            raise _refused(home, f"another worker, {others[0]}, serves the host id {host_id(home)}")
        await asyncio.sleep(LOOK_S)


async def _polled(client: Client, queue: str) -> dict[str, float]:
    """Who asked last for activities of a queue, and when, on the engine's clock."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    try:
        answer = await client.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=RPC_S))
    except RPCError:
        return {}
    return {poller.identity: poller.last_access_time.ToNanoseconds() / 1e9 for poller in answer.pollers}


def _refused(home: Home, what: str) -> RefusedError:
    return RefusedError(
        f"two hosts with one id: {what}",
        hint=f"in the copy, remove host-id and host.json of {home.root}: it becomes a host of its own; "
        "if it was moved here for good, remove host.json alone",
    )


def _machine() -> str:
    for path in MACHINE_IDS:
        try:
            found = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return ""


def _id_at(root: Path) -> str:
    try:
        return (root / "host-id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
