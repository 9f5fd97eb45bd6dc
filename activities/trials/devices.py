"""What a measurement has for itself: kinds of devices, which tell whether a set exists, and is free and quiet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ...workflows.model.round.plan import DeviceSet
from ..sandbox.registry import chosen
from .cuda import Cuda
from .processors import Processors, spare


class Kind(Protocol):
    """One kind of device. Of a set that names none of its kind it has nothing to say."""

    def identities(self, devices: DeviceSet) -> tuple[str, ...]:
        """Names of the set's devices that mean the same on every platform and to every process of the host."""
        ...

    def flaw(self, devices: DeviceSet) -> str:
        """Why the set does not exist on this host; empty when it does."""
        ...

    def busy(self, devices: DeviceSet) -> str:
        """Why it is busy or not as the plan says right now; empty when it may be measured on."""
        ...

    def environment(self, devices: DeviceSet) -> Mapping[str, str]:
        """Variables by which a program finds these devices and no others."""
        ...

    def nodes(self, devices: DeviceSet) -> tuple[Path, ...]:
        """Files of devices that a program must be able to open."""
        ...


LEAVE = "name `cpus:` and leave one free"
"""What mends it when sets are crowded."""

KINDS: tuple[Kind, ...] = (Processors(), Cuda())


def identities(devices: DeviceSet) -> tuple[str, ...]:
    """The devices of a set, sorted: `cpu-3`, `gpu-UUID`. Raises RefusedError for a set that does not exist."""
    return tuple(sorted({name for kind in KINDS for name in kind.identities(devices)}))


def flaws(devices: DeviceSet, *, sandbox: bool = True) -> str:
    """Why a set cannot be measured on, on this host; empty when it can."""
    if sandbox and devices.cpus and chosen().name != "bwrap":
        return f"what runs in {chosen().name} is not pinned to processors: set ORCH_SANDBOX=bwrap, or name no cpus"
    return next((flaw for kind in KINDS if (flaw := kind.flaw(devices))), "")


def crowded(sets: Sequence[DeviceSet]) -> str:
    """What runs on the processors of a plan's sets besides measurements, on this host; empty when others are left."""
    if spare(sets):
        return ""
    return "no processor is left for agents, builds and validators: they run beside measurements, and on the same ones"


def qualify(devices: DeviceSet) -> str:
    """Why a set cannot be measured on right now; empty when it can. It may take a tenth of a second."""
    return next((why for ask in ("flaw", "busy") for kind in KINDS if (why := getattr(kind, ask)(devices))), "")


def environment(devices: DeviceSet) -> dict[str, str]:
    """Variables by which a program finds a set's devices."""
    return {name: value for kind in KINDS for name, value in kind.environment(devices).items()}


def nodes(devices: DeviceSet) -> tuple[Path, ...]:
    """Files of devices that a program on the set must be able to open."""
    return tuple(path for kind in KINDS for path in kind.nodes(devices))
