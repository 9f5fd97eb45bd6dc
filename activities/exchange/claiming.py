"""The `claim_host` activity: whichever host has room, and is fit for the attempt, takes it."""

from __future__ import annotations

import time

from ...workflows.errors import HostFaultError, RefusedError
from ...workflows.model.claim import Claimed, ClaimHost
from .. import slots
from ..agents.registry import resolve
from ..effect import effect, in_thread
from ..home import Home
from ..sandbox.registry import probe
from .depot import Depot

UNUSED_S = 60.0
"""A slot whose attempt has not begun for this long was claimed in vain: the answer was lost, another host took it."""

BACK = "the attempt goes back to the queue"


class Claims:
    """Reserves slots of this host for attempts that may run anywhere."""

    def __init__(self, home: Home, slot_count: int) -> None:
        self._home = home
        self._slots = slot_count

    @effect
    async def claim_host(self, request: ClaimHost) -> Claimed:
        """Reserve a slot of this host for an attempt; a host that cannot take it gives it back to the others."""
        return await in_thread(self._claim, request)

    def _claim(self, request: ClaimHost) -> Claimed:
        key = request.attempt
        if why := unfit(request):
            raise HostFaultError(f"{self._host}: {why}", hint=BACK)
        expire(self._home)
        if slots.claim(self._home.slots, f"{key.run}/{key.name}", self._slots) is None:
            raise HostFaultError(f"{self._host}: no room", hint=BACK)
        return Claimed(host=self._host)

    @property
    def _host(self) -> str:
        return self._home.host_id.read_text(encoding="utf-8").strip()


def unfit(request: ClaimHost) -> str:
    """Why this host cannot take the attempt, if so: what is the host's own lack is no failure of the attempt."""
    try:
        agent = resolve(request.agent)
        Depot(request.exchange.url).read(f"{request.exchange.key}/any")
    except (HostFaultError, RefusedError) as error:
        return error.message
    if missing := agent.adapter.missing(agent.spec, None):
        return f"agent {request.agent!r}: program {missing!r} is not there"
    flaw = probe() if request.sandbox else None
    return f"the sandbox does not work: {flaw.why}" if flaw else ""


def has_room(home: Home, slot_count: int) -> bool:
    """Whether a slot of this host is free."""
    expire(home)
    return len(slots.held(home.slots)) < slot_count


def expire(home: Home) -> None:
    """Give back slots that were claimed and never used."""
    for index, holder in slots.held(home.slots).items():
        run, _, name = holder.partition("/")
        begun = (home.run(run) / "attempts" / name).exists()
        try:
            age = time.time() - (home.slots / str(index)).stat().st_mtime
        except FileNotFoundError:
            continue
        if not begun and age > UNUSED_S:
            slots.release(home.slots, holder)
