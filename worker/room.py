"""Ask for attempts only while there is room: what a full host took off the queue would keep others from it."""

from __future__ import annotations

import asyncio

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

from ..activities.exchange.claiming import has_room
from .settings import Settings

LOOK_S = 0.2
"""How often a full host looks whether there is room again."""


class WhenThereIsRoom(CustomSlotSupplier):
    """Lets one poll out at a time, and none while every slot of the host is taken.

    A slot may be taken while a poll is out, by a run that stays on this host: the claim then goes back to the queue.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._out = False

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002 - the SDK's signature
        """Wait for room."""
        while self._out or not has_room(self._settings.home, self._settings.slots):  # noqa: ASYNC110 - slots are files
            await asyncio.sleep(LOOK_S)
        self._out = True
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        """Nothing is handed over without a poll."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Nothing to do: the slot that counts is a file."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002
        """The claim is answered, or the poll brought nothing."""
        self._out = False


def when_there_is_room(settings: Settings) -> WorkerTuner:
    """A tuner for a worker that only claims."""
    one = FixedSizeSlotSupplier(1)
    return WorkerTuner.create_composite(
        workflow_supplier=FixedSizeSlotSupplier(2),
        activity_supplier=WhenThereIsRoom(settings),
        local_activity_supplier=one,
        nexus_supplier=one,
    )
