"""Holding a device set: leased, and as quiet as the plan wants it; how long it was held is written down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...workflows.model.base import Value
from ...workflows.model.round.plan import DeviceSet
from ..artifacts import write_whole
from ..effect import in_thread
from ..job_records import seconds_of
from ..jobs import end_job
from . import devices, journal
from .leases import Lease, Taken, leased
from .processors import TRIAL
from .sides import Trial

FILE = "lease-"
"""Begins the names of files in the measurement's folder: one for each job that held the device."""

DEVICE = "device"
"""In the measurement's folder: the name of the set that it is measured on."""

QUALIFY_S = 1.0
"""Seconds after which a device that is not as the plan wants it is looked at again."""


class Holding(Value):
    """One job's time with the device.

    Attributes:
        since: Unix time from which it held it.
        waited_s: seconds that it waited for it.
        held_s: seconds that it held it.
    """

    since: float
    waited_s: float
    held_s: float = 0.0


@asynccontextmanager
async def hold(trial: Trial, device: DeviceSet, number: int, *, patience_s: float) -> AsyncIterator[Lease | str]:
    """Hold the set for the job of that number; what is in the way when it cannot be had in time."""
    begun, names = time.monotonic(), await in_thread(devices.identities, device)
    while True:
        left = max(0.0, begun + patience_s - time.monotonic())
        async with leased(names, patience_s=left) as lease:
            why = await _not_ready(lease, device)
            if isinstance(lease, Lease) and not why:
                held = Holding(since=time.time(), waited_s=time.monotonic() - begun)
                write_whole(trial.folder / DEVICE, device.name)
                write_whole(trial.folder / f"{FILE}{number}.json", held.model_dump_json())
                yield lease
                return
        if time.monotonic() >= begun + patience_s:
            yield why
            return
        await asyncio.sleep(min(QUALIFY_S, left))


def begin_anew_elsewhere(trial: Trial, name: str) -> None:
    """Put aside what was measured on another set: the pairs of one measurement are of one device."""
    kept = trial.folder / DEVICE
    if not kept.exists() or (before := kept.read_text(encoding="utf-8")) == name:
        return
    aside = trial.folder / f"on-{before}-{len(list(trial.folder.glob('on-*')))}"  # it may have been there before
    aside.mkdir()
    for job in trial.folder.glob(f"{TRIAL}*"):
        end_job(job)
    for pattern in (f"{TRIAL}*", f"{FILE}*", journal.FILE, DEVICE):
        for path in trial.folder.glob(pattern):
            path.rename(aside / path.name)


async def _not_ready(lease: Lease | Taken, device: DeviceSet) -> str:
    if isinstance(lease, Taken):
        return f"{lease.name} is leased by another measurement"
    return await in_thread(devices.qualify, device)


def holdings(trial: Trial) -> tuple[Holding, ...]:
    """How long each job of a trial held the device, once they all have ended."""
    found = []
    for path in sorted(trial.folder.glob(f"{FILE}*.json")):
        held = Holding.model_validate_json(path.read_bytes())
        number = path.stem.removeprefix(FILE)
        found.append(held.model_copy(update={"held_s": seconds_of(trial.folder / f"{TRIAL}{number}")}))
    return tuple(found)
