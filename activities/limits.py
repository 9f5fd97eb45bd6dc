"""What a step may use on this host: sane values, or the operator's from the environment."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..workflows.errors import RefusedError

PROCESSES = "ORCH_LIMIT_PROCESSES"
MEMORY = "ORCH_LIMIT_MEMORY"
FILE = "ORCH_LIMIT_FILE"
"""The variables that set other limits: a count, and sizes such as `4g`; they hold for agents and rungs alike."""

FLOOR_BYTES = 200 << 20
"""Less free space than this is no space: nothing starts, and what filled the disk is ended."""

AGENT_PROCESSES = 2048
STEP_PROCESSES = 1024
FILE_BYTES = 8 << 30
MEMORY_SHARE = 0.75
"""The part of the machine's memory that a step may have."""

CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's own limit stands, with control groups of version 2 and 1."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


@dataclass(frozen=True)
class StepLimits:
    """What all processes of a step together may use.

    Attributes:
        processes: how many there may be; twice as many threads (`supervisor/limits.py`).
        memory: bytes, what they share counted once.
        file: bytes of one file that one of them writes.
        disk_floor: free bytes that must be left on the disk they write to.
    """

    processes: int
    memory: int
    file: int
    disk_floor: int = FLOOR_BYTES

    @classmethod
    def of_this_host(cls, given: Mapping[str, str] = os.environ) -> StepLimits:
        """Those of set-up and rungs; raises RefusedError for a value that cannot be read."""
        return _limits(given.get(PROCESSES, ""), given.get(MEMORY, ""), given.get(FILE, ""))

    def for_agent(self) -> StepLimits:
        """The same for an agent, which may start a server, a build and its tests at once."""
        return self if os.environ.get(PROCESSES) else replace(self, processes=AGENT_PROCESSES)


@functools.cache
def _limits(processes: str, memory: str, file: str) -> StepLimits:
    return StepLimits(
        processes=_count(PROCESSES, processes) if processes else STEP_PROCESSES,
        memory=_bytes(MEMORY, memory) if memory else int(_machine_bytes() * MEMORY_SHARE),
        file=_bytes(FILE, file) if file else FILE_BYTES,
    )


def _machine_bytes() -> int:
    """The memory of the machine, or of the container that is all there is."""
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *map(_number, CONTAINER))


def _number(path: str) -> int:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # another kind of control groups, or `max`
        return sys.maxsize


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise RefusedError(f"{name}: {text[:40]!r} is no number of processes", hint=f"write {name}=2048")
    return int(text)


def _bytes(name: str, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " ")) if found else 0
    if not size:
        raise RefusedError(f"{name}: {text[:40]!r} is no size", hint=f"write {name}=4g")
    return size
