"""The worker process: serve a state directory until told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import NoReturn

import structlog
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from ..activities.home import Home
from ..activities.workspaces.removal import delete_in_background
from ..workflows.errors import OrchError, RefusedError, UnreachableError
from . import background, locks, same_id, search_attributes
from .assembly import make_workers
from .codec import SealingCodec, load_codec
from .connection import connect, is_local, open_port
from .reaping import keep_tidy, reap, reap_replaced
from .records import read_server, read_worker, record_this_worker, version, worker_identity
from .settings import Settings, load_settings, refuse_unknown_makers
from .state import host_id, open_state
from .telemetry import log_to_stderr, worker_runtime

log = structlog.get_logger()

LOCK_S = 1.0
"""A worker that just ended may hold its lock a moment longer."""

REAP_S = 30.0
TIDY_S = 60.0


def main(home: Home | None = None) -> NoReturn:
    """Serve until SIGTERM or SIGINT (a second one ends at once); `home` overrides `ORCH_STATE`.

    Exit status: 0 stopped, 2 refused, 3 engine unreachable, 70 a bug.
    """
    log_to_stderr()
    asyncio.run(_run(home))
    raise AssertionError("unreachable: _run ends the process")


async def _run(home: Home | None) -> NoReturn:
    """Serve, then end without finalising the interpreter, which races the SDK's threads (sdk-python#300)."""
    try:
        settings = load_settings()
        await serve(replace(settings, home=home) if home else settings)
        status = 0
    except OrchError as error:
        log.error("worker_refused", error=error.message, hint=error.hint)  # noqa: TRY400
        status = 2 if isinstance(error, RefusedError) else 3 if isinstance(error, UnreachableError) else 70
    except BaseException as error:
        log.exception("worker_failed", error=repr(error), version=version())
        status = 70
    _leave(status)


def _leave(status: int) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


async def serve(settings: Settings) -> None:
    """Serve one state directory, alone; returns after the first stop signal and a graceful shutdown."""
    home = settings.home
    refuse_unknown_makers()
    stop = _stop_signal()
    open_state(home)
    lock = await locks.take_within(home.engine / "worker.lock", LOCK_S)
    if lock is None:
        first = read_worker(home)
        raise RefusedError(
            f"another worker serves {home.root} (process {first.pid if first else 'unknown'})",
            hint="stop it with `orch down`, or set ORCH_STATE",
        )
    same_id.settle(home)
    identity, codec = worker_identity(host_id(home), settings.labels), load_codec(home)
    record_this_worker(home, identity=identity, codec=codec.mode, engine_port=open_port(home))
    client = await connect(home, identity=identity, runtime=worker_runtime(settings.metrics), serving=True)
    if not is_local(home):
        await search_attributes.register(client)
    for item in await reap(client, home):
        log.info("leftover_collected", kind=item.kind, path=str(item.path), bytes=item.bytes, flaw=item.flaw)
    for path in await reap_replaced(client, home):
        log.info("attempt_reaped", path=str(path))
    delete_in_background()
    workers = make_workers(client, settings)
    log.info("worker_started", identity=identity, version=version(), slots=settings.slots)
    async with _decoding(home, codec):
        await _serve_until(stop, workers, home, client)
    log.info("worker_stopped", identity=identity)


@asynccontextmanager
async def _decoding(home: Home, codec: SealingCodec) -> AsyncIterator[None]:
    """Decode payloads for the local Web UI meanwhile, if there is need; runs go on when that cannot be."""
    server = read_server(home) if is_local(home) else None
    if server is None or not server.codec_port:
        yield
        return
    from .codec_server import CodecSite, serving  # late: most workers need no HTTP

    origins = (server.ui_url, server.ui_url.replace("127.0.0.1", "localhost"))
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving(codec, CodecSite(server.codec_port, origins=origins)))
            log.info("codec_server_started", url=url)
        except RefusedError as error:
            log.error("codec_server_refused", error=error.message, hint=error.hint)  # noqa: TRY400
        yield


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()

    def stop_or_leave() -> None:
        if stop.is_set():
            _leave(130)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_or_leave)
    return stop


async def _serve_until(stop: asyncio.Event, workers: list[Worker], home: Home, client: Client) -> None:
    """Run the workers side by side; one that fails ends all, and so does another host with this one's id."""
    async with asyncio.TaskGroup() as group:
        besides = [group.create_task(_keep_house(home)), group.create_task(_reap_replaced(client, home))]
        alone = group.create_task(_refusal(client, home, stop))
        serving = [group.create_task(worker.run()) for worker in workers]
        stopping = group.create_task(stop.wait())
        await asyncio.wait([stopping, *serving], return_when=asyncio.FIRST_COMPLETED)
        log.info("worker_stopping")
        await asyncio.gather(*(worker.shutdown() for worker in workers))
        for task in (*besides, alone, stopping):
            task.cancel()
    if alone.done() and not alone.cancelled() and (refused := alone.result()):
        raise refused


async def _refusal(client: Client, home: Home, stop: asyncio.Event) -> RefusedError | None:
    """Watch for another host of this id; what says so once the workers were told to stop."""
    try:
        await same_id.watch(client, home, client.identity)
    except RefusedError as error:
        stop.set()
        return error
    return None


async def _reap_replaced(client: Client, home: Home) -> None:
    """Let go of attempts that were begun anew elsewhere while this host could not be reached."""
    while True:
        await asyncio.sleep(REAP_S)
        try:
            for path in await reap_replaced(client, home):
                log.info("attempt_reaped", path=str(path))
        except RPCError as error:  # the engine is away: there is time
            log.info("attempts_not_reaped", error=error.message)


async def _keep_house(home: Home) -> None:
    """Keep logs small and the trash empty; what the disk refuses is logged, and tried again."""
    while True:
        try:
            await keep_tidy(home)
            for name in ("server.log", "worker.log"):
                background.rotate(home.engine / name)
        except OSError as error:
            log.warning("house_not_kept", error=str(error))
        await asyncio.sleep(TIDY_S)


if __name__ == "__main__":
    main()
