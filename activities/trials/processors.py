"""Processors as devices: whether they are there, may be pinned to, and are as quiet as the plan wants them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ...workflows.model.round.plan import DeviceSet
from .. import processes, supervisor

TRIAL = "trial-"
"""Begins the names of the folders of jobs that hold a device."""

LOOKS, APART_S = 10, 0.01
"""How often, and how far apart, it is counted what runs, where the load alone does not tell."""

PROCESSOR = 36
"""Where the kernel tells a thread's processor, in what follows its name."""


@dataclass(frozen=True)
class Processors:
    """Those of this host, by the numbers the kernel gives them.

    Attributes:
        sys: where sysfs lies.
        proc: where procfs lies.
    """

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")

    def identities(self, devices: DeviceSet) -> tuple[str, ...]:
        """`cpu-3` for each of them; of a set that names none, all of the host's."""
        return tuple(f"cpu-{number}" for number in devices.cpus or self._online())

    def flaw(self, devices: DeviceSet) -> str:
        """Why the set does not exist on this host."""
        online = self._online()
        if missing := sorted(set(devices.cpus) - set(online)):
            return f"no {_named(missing)} on this host: it has {_ranges(online)}"
        if devices.cpus and (said := _pinning_flaw(devices.cpus)):
            return f"nothing can be pinned to {_named(devices.cpus)} here: {said}"
        if devices.governor and (unknown := [n for n in devices.cpus or online if self._governor(n) is None]):
            return f"{_named(unknown)} of this host tells no frequency governor"
        return ""

    def busy(self, devices: DeviceSet) -> str:
        """Why it is not as the plan says right now."""
        if devices.governor:
            for number in devices.cpus or self._online():
                if (found := self._governor(number)) != devices.governor:
                    return f"the governor of cpu-{number} is {found}, not {devices.governor}"
        return self._load(devices.load, devices.cpus) if devices.load is not None else ""

    def environment(self, devices: DeviceSet) -> Mapping[str, str]:  # noqa: ARG002 - it is pinned by its supervisor
        """Nothing."""
        return {}

    def nodes(self, devices: DeviceSet) -> tuple[Path, ...]:  # noqa: ARG002 - everybody has processors
        """Nothing."""
        return ()

    def cores(self, cpus: Iterable[int]) -> set[int]:
        """All processors of the cores that these belong to, as far as the kernel says which share one."""
        found = set(cpus)
        for number in tuple(found):
            with suppress(OSError, ValueError):
                path = self.sys / f"devices/system/cpu/cpu{number}/topology/thread_siblings_list"
                found.update(_numbers(path.read_text(encoding="ascii")))
        return found

    def _load(self, most: float, cpus: tuple[int, ...]) -> str:
        """The one-minute load still tells of the measurement before, and of all processors: it is counted what runs."""
        load = os.getloadavg()[0]
        if load <= most or (now := self._others(load, cpus)) <= most:
            return ""
        which = f"on {_named(cpus)}" if cpus else "no measurement"
        return f"the load of this host is {load:.2f}, and {now:.1f} of it are {which}: at most {most:g} may be"

    def _others(self, load: float, cpus: tuple[int, ...]) -> float:
        """How many threads are running on these, or want to, that belong to no trial; `load` where nobody says."""
        try:
            looks = []
            for _ in range(LOOKS):
                time.sleep(APART_S)
                looks.append(self._running_on(cpus) if cpus else self._running())
        except (OSError, ValueError, IndexError):
            return load
        return sum(looks) / len(looks)

    def _running(self) -> int:
        everything = int((self.proc / "loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
        return max(0, everything - 1 - running(trial_pids()))  # less the thread that asks

    def _running_on(self, cpus: tuple[int, ...]) -> int:
        """No trial runs there: that is asked before one begins, and others are pinned elsewhere."""
        me = str(threading.get_native_id())
        tasks = (task for task in self.proc.glob("[0-9]*/task/*") if task.name != me)
        return sum(_processor(task) in cpus for task in tasks)

    def _online(self) -> tuple[int, ...]:
        try:
            return _numbers((self.sys / "devices/system/cpu/online").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return tuple(range(os.cpu_count() or 1))

    def _governor(self, number: int) -> str | None:
        path = self.sys / f"devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
        try:
            return path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None


def spare(sets: Iterable[DeviceSet], host: Processors = Processors()) -> tuple[int, ...]:
    """The processors that no measurement has, for what runs beside one; empty when none are left or none are named.

    Nor has a measurement the other half of one: two threads of a core take its time from one another.
    """
    named = [set(devices.cpus) for devices in sets]
    if not all(named) or not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0) - host.cores(set().union(*named))))


def entangled(sets: Iterable[DeviceSet], host: Processors = Processors()) -> str:
    """Which two sets, measured on at once, have halves of one core; empty when none do."""
    for one, other in combinations(sets, 2):
        at_once = set(one.cpus).isdisjoint(other.cpus)
        if at_once and (shared := host.cores(one.cpus).intersection(other.cpus)):
            return f"{_named(sorted(shared))} of device set {other.name!r} share cores with device set {one.name!r}"
    return ""


def _pinning_flaw(cpus: tuple[int, ...]) -> str:
    """What the kernel says to being pinned, shown by a thread that tries it and ends."""
    said: list[str] = []

    def attempt() -> None:
        try:
            os.sched_setaffinity(0, cpus)
            if missing := set(cpus) - os.sched_getaffinity(0):
                said.append(f"{_named(sorted(missing))} may not be used")
        except AttributeError:
            said.append("this system pins nothing")
        except OSError as error:
            said.append(error.strerror or str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return "".join(said)


def trial_pids() -> list[int]:
    """The processes of trials on this host, as far as this user can tell."""
    marked = processes.marked(supervisor.MARK)
    return [pid for pid, folder in marked.items() if Path(folder).name.startswith(TRIAL)]


def running(pids: Iterable[int]) -> int:
    """How many threads of some processes are running, or want to."""
    found = 0
    for pid in pids:
        with suppress(OSError):
            found += sum(_processor(task) is not None for task in Path(f"/proc/{pid}/task").iterdir())
    return found


def _processor(task: Path) -> int | None:
    """Where a thread is running, or wants to; None for one that waits for something else."""
    with suppress(OSError, ValueError, IndexError):
        facts = (task / "stat").read_bytes().rpartition(b")")[2].split()
        return int(facts[PROCESSOR]) if facts[0] == b"R" else None
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list such as `0-3,8`."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _ranges(numbers: Iterable[int]) -> str:
    """`cpu-0 to cpu-3, cpu-8`: the inverse, in words."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"cpu-{a}" if a == b else f"cpu-{a} to cpu-{b}" for a, b in runs)


def _named(numbers: Iterable[int]) -> str:
    return ", ".join(f"cpu-{number}" for number in numbers)
