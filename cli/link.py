"""The link to the engine: made when first needed, and made again when the engine or its worker died."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio.client import Client as Temporal
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from ..activities.home import Home
from ..workflows.errors import UnreachableError

T = TypeVar("T")

RPC_TIMEOUT = timedelta(seconds=5)
"""One question to the engine; a longer silence means that it, or its worker, is gone."""

PATIENCE = 30.0
"""Seconds a one-shot command waits for an engine that is being brought back."""

_PAUSE = 1.0
_AWAY = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.ABORTED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
}


def is_away(error: Exception) -> bool:
    """Whether an error says that nobody answers for now, not that the answer is no."""
    if isinstance(error, RPCError):
        return error.status in _AWAY
    return isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError | UnreachableError)


class Link:
    """A lazy, self-mending connection to the engine of one state directory.

    Attributes:
        home: the state directory.
        say: told when an engine is started.
    """

    def __init__(self, home: Home, say: Callable[[str], None] = lambda _text: None) -> None:
        self.home = home
        self.say = say
        self._temporal: Temporal | None = None
        self._met = False  # an engine that never answered is not worth waiting for

    @property
    def unused(self) -> bool:
        """Whether this state directory never had an engine, so that it can know of no run."""
        from ..worker.records import read_server

        return self.local and read_server(self.home) is None

    @property
    def local(self) -> bool:
        """Whether runs go to the local engine."""
        from ..worker.connection import is_local

        return is_local(self.home)

    async def temporal(self) -> Temporal:
        """The connected client, a local engine brought up first; UnreachableError when nobody answers."""
        if self._temporal is None:
            from ..worker.connection import connect
            from ..worker.engine import ensure_up

            if self.local:
                await ensure_up(self.home, say=self.say)
            self._temporal = await connect(self.home)
            self._met = True
        return self._temporal

    async def call(self, ask: Callable[[Temporal], Awaitable[T]], *, patience: float = PATIENCE) -> T:
        """Ask until there is an answer; UnreachableError when there is none for `patience` seconds."""
        give_up = time.monotonic() + patience
        while True:
            try:
                return await ask(await self.temporal())
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError, UnreachableError) as error:
                never_met = isinstance(error, UnreachableError) and not self._met
                if never_met or not is_away(error):
                    raise
                self._temporal = None
                if time.monotonic() >= give_up:
                    raise unreachable(error) from error
            await asyncio.sleep(_PAUSE)

    async def page_of(self, run: str) -> str:
        """The Web UI's page of a run; empty for a cluster, whose UI is not known here."""
        from ..worker.engine import run_url, status

        engine = await status(self.home)
        known = self.local and engine.ui_url
        return run_url(engine.ui_url, namespace=engine.namespace, workflow_id=run) if known else ""


def unreachable(error: Exception) -> UnreachableError:
    """The error for an engine that does not answer."""
    if isinstance(error, UnreachableError):
        return error
    return UnreachableError(
        f"the engine does not answer: {' '.join(str(error).split())[:200]}",
        hint="`orch status` tells what runs; `orch up` starts the local engine; check TEMPORAL_ADDRESS for a cluster",
    )
