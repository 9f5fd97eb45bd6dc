"""Which of a device set this host has."""

from __future__ import annotations

import os
from pathlib import Path

from ...workflows.model.round.plan import DeviceSet


def flaws(devices: DeviceSet, *, sandbox: bool = True) -> str:  # noqa: ARG001 - the sandbox may not pin processors
    """What of a device set is not on this host, in words; empty when all of it is."""
    missing = [f"processor {number}" for number in devices.cpus if number not in os.sched_getaffinity(0)]
    missing += [f"CUDA device {number}" for number in devices.cuda if not Path(f"/dev/nvidia{number}").exists()]
    return f"this host has no {', no '.join(missing)}" if missing else ""
