"""The local engine as one thing: a server and a worker in the background that outlive the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from ..activities.home import Home
from ..workflows.errors import RefusedError, UnreachableError
from . import locks, server, serving
from .connection import connect, is_local
from .records import NAMESPACE, read_server, read_worker
from .state import open_state, writable

State = Literal["running", "stopped"]


@dataclass(frozen=True)
class EngineStatus:
    """What runs of the local engine, and where."""

    server: State
    worker: State
    address: str = ""
    """`host:port` for clients; kept while stopped, empty before the first start."""
    ui_url: str = ""
    codec_url: str = ""
    """Where the worker decodes payloads for the Web UI; empty when they are not encoded."""
    namespace: str = NAMESPACE
    pids: Mapping[str, int] = field(default_factory=dict)
    """Of what runs: `server`, `worker`."""
    version: str = ""
    """Of the worker's `orch`."""
    server_version: str = ""
    started_at: datetime | None = None
    """When the server was started."""

    @property
    def up(self) -> bool:
        """Whether both run."""
        return self.server == self.worker == "running"


def _quiet(_text: str) -> None:
    """Say nothing."""


async def ensure_up(home: Home, *, port: int | None = None, say: Callable[[str], None] = _quiet) -> EngineStatus:
    """Start what is missing and return when server and worker both answer; many processes may ask at once.

    Raises RefusedError (state directory, port) or UnreachableError (it does not start).
    """
    if not is_local(home):
        raise RefusedError(
            "TEMPORAL_ADDRESS or TEMPORAL_PROFILE names a cluster, so there is no local engine",
            hint="serve it with `orch worker`, or unset the variable",
        )
    home = Home(home.root.absolute())
    open_state(home)
    if not await _all_well(home, port):
        with writable(home):
            async with locks.held(home.engine / "up.lock"):
                await server.ensure(home, port=port, say=say)
                await serving.ensure(home, say=say)
    return await status(home)


async def _all_well(home: Home, port: int | None) -> bool:
    """The common case, checked without a lock: both run, answer and are of this version."""
    recorded, worker = read_server(home), read_worker(home)
    if not server.serves(recorded, home) or worker is None or not worker.alive or not serving.fits(home, worker):
        return False
    try:
        client = await connect(home, environ={})
        return port in {None, recorded.port} and await serving.polls(client, home, worker)
    except UnreachableError:
        return False


async def status(home: Home) -> EngineStatus:
    """What is recorded and still runs; changes nothing."""
    recorded, worker = read_server(home), read_worker(home)
    alive = {name: record for name, record in (("server", recorded), ("worker", worker)) if record and record.alive}
    return EngineStatus(
        server="running" if "server" in alive else "stopped",
        worker="running" if "worker" in alive else "stopped",
        address=recorded.address if recorded else "",
        ui_url=recorded.ui_url if recorded else "",
        codec_url=recorded.codec_url if recorded else "",
        pids={name: record.pid for name, record in alive.items()},
        version=worker.version if worker and "worker" in alive else "",
        server_version=recorded.version if recorded else "",
        started_at=recorded.started_at if recorded and "server" in alive else None,
    )


async def down(home: Home) -> None:
    """Stop the worker (its agents go on), then the server; nothing to stop is no error."""
    if not home.engine.is_dir():
        return
    async with locks.held(home.engine / "up.lock"):
        await serving.end(home)
        await server.end(home)


def run_url(ui_url: str, namespace: str, workflow_id: str, run_id: str | None = None) -> str:
    """The Web UI's page of a run (of its latest execution without `run_id`)."""
    page = f"{ui_url.rstrip('/')}/namespaces/{quote(namespace, safe='')}/workflows/{quote(workflow_id, safe='')}"
    return f"{page}/{quote(run_id, safe='')}/history" if run_id else page
