"""What a measurement has for itself: kinds of devices, which tell whether a set exists, and is free and quiet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ...workflows.model.round.plan import DeviceSet
from ..sandbox.registry import chosen
from ..supervisor import pinning
from .cuda import Cuda
from .processors import Processors, entangled, spare


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


LEAVE = "name `cpus:` and leave a core free"

KINDS: tuple[Kind, ...] = (Processors(), Cuda())


def identities(devices: DeviceSet) -> tuple[str, ...]:
    """The devices of a set, sorted: `cpu-3`, `gpu-UUID`.

    Raises RefusedError for a set that does not exist, HostFaultError when the host does not tell.
    """
    return tuple(sorted({name for kind in KINDS for name in kind.identities(devices)}))


def flaws(devices: DeviceSet, *, sandbox: bool = True) -> str:
    """Why a set cannot be measured on, on this host; empty when it can."""
    if sandbox and devices.cpus and chosen().name != "bwrap":
        return f"what runs in {chosen().name} is not pinned to processors: set ORCH_SANDBOX=bwrap, or name no cpus"
    return next((flaw for kind in KINDS if (flaw := kind.flaw(devices))), "")


def disturbances(sets: Sequence[DeviceSet]) -> Iterator[tuple[str, str]]:
    """What may disturb measurements on a plan's sets, on this host, and what mends it."""
    if not spare(sets):
        beside = "they run beside measurements, and on the same ones"
        yield f"no processor is left for agents, builds and validators: {beside}", LEAVE
    if shared := entangled(sets):
        yield shared, "give both threads of a core to one set"
    if any(devices.cpus for devices in sets) and (loose := pinning.flaw()):
        yield f"what is measured could leave its processors: {loose}", "measure on another host"


def qualify(devices: DeviceSet) -> str:
    """Why a set cannot be measured on right now; empty when it can. It may take a tenth of a second."""
    return next((why for ask in ("flaw", "busy") for kind in KINDS if (why := getattr(kind, ask)(devices))), "")


def environment(devices: DeviceSet) -> dict[str, str]:
    """Variables by which a program finds a set's devices."""
    return {name: value for kind in KINDS for name, value in kind.environment(devices).items()}


def nodes(devices: DeviceSet) -> tuple[Path, ...]:
    """Files of devices that a program on the set must be able to open."""
    return tuple(path for kind in KINDS for path in kind.nodes(devices))
