"""Follow a run's ledger live: woken by its history, brought back when the engine or its worker died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from temporalio.service import RPCError

from ..workflows.errors import OrchError
from ..workflows.model.event import Event
from .link import PATIENCE, Link
from .runs import closed_as, ledger_page

_FOREVER = 365 * 86_400.0

_SETTLE = 0.25
"""Seconds for a burst of history to be written before the ledger is asked: each question is work for the engine."""

_LOOK = 2.0
"""Seconds after which the ledger is asked though nothing was heard: a dead worker writes no history."""

_CLOSING = 30.0
"""Seconds that a run which said its last word may take to let go of what it held."""


async def follow_events(link: Link, run: str, *, since: int = 0) -> AsyncIterator[Event]:
    """The run's events after `since`, until it has ended and let go of everything."""
    bell = _Bell(link, run)
    patience = PATIENCE
    try:
        while True:
            page = await ledger_page(link, run, since, patience=patience)
            patience = _FOREVER  # once the run was seen, nothing but its end ends this
            for event in page.events:
                yield event
                since = event.seq
            if page.ended:
                await bell.silence(_CLOSING)
                return
            if not page.events:
                if bell.over:
                    return
                await bell.wait(_LOOK)
    finally:
        await bell.close()


class _Bell:
    """Rings when the run's workflow writes history; falls silent when that is over."""

    def __init__(self, link: Link, run: str) -> None:
        self._link = link
        self._run = run
        self._rung = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether the workflow has closed."""
        return self._listening is not None and self._listening.done()

    async def wait(self, seconds: float) -> None:
        """Wait for the bell, or for this long."""
        self._listening = self._listening or asyncio.create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
                await asyncio.wait([self._listening], timeout=_SETTLE)
        self._rung.clear()

    async def silence(self, seconds: float) -> None:
        """Wait for the workflow's close, at most this long; at once when nothing was listened to."""
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=seconds)

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            with suppress(RPCError, OrchError):  # the ledger's side brings the engine back, or gives up
                temporal = await self._link.temporal()
                async for _ in temporal.get_workflow_handle(self._run).fetch_history_events(wait_new_event=True):
                    self._rung.set()
                if await closed_as(self._link, self._run):
                    self._rung.set()
                    return
            await asyncio.sleep(_LOOK)
