"""Who gets a slot of this host, and who waits for one."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from . import slots
from .effect import in_thread
from .home import Home

SLOT_POLL_S = 1.0
"""How often is looked for a slot that another process gave back; of this one's the waiting are told."""


class Admission:
    """The slots of one host, as one process hands them out; they outlive it."""

    def __init__(self, home: Home, slot_count: int) -> None:
        self._home = home
        self._slots = slot_count
        self._freed = asyncio.Condition()

    async def enter(self, owner: str, deadline: float | None) -> bool:
        """Hold a slot, or the one it has; False when the deadline (this host's clock) passed before there was one."""
        while slots.claim(self._home.slots, owner, self._slots) is None:
            left = SLOT_POLL_S if deadline is None else deadline - time.time()
            if left <= 0:
                return False
            await self._slot_freed(within_s=min(SLOT_POLL_S, left))
        return True

    async def leave(self, owner: str) -> None:
        """Give the slot back and tell who waits. Idempotent."""
        await in_thread(slots.release, self._home.slots, owner)
        await self.tell()

    async def tell(self) -> None:
        """Tell who waits that a slot may have become free."""
        async with self._freed:
            self._freed.notify_all()

    async def _slot_freed(self, *, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._freed:
                await self._freed.wait()
