"""The supervisor of one job: it runs the steps, outlives the worker, and leaves nothing running.

Run as a program with FOLDER and LOCK_FD. FOLDER holds one job:

    job.json            the steps; written by the starter
    lock                locked as long as the supervisor lives (LOCK_FD is inherited and only kept open)
    supervisor.json     its pid and start time: steps may have run
    cgroup              the control group of the steps, where one could be made
    1-stdout  1-stderr  the output of each step, capped, without secrets
    results.jsonl       a line for each step that ended
    exit.json           written last: the results are final
"""

# ruff: noqa: PTH123
from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress

from . import cgroups, pinning
from .clocks import Deadline
from .files import END, GROUP, IDENTITY, JOB, MARK, RESULTS, write_whole
from .keeper import ORPHANED, adopt_orphans, die_with_parent, kept
from .limits import THREADS, TICK_S, TOO_LARGE, Watch, constrain, size
from .procfs import below, children, start_ticks
from .pump import Pump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

STOPS: dict[int, int] = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, ORPHANED: signal.SIGKILL}
"""What ends a job, and what its steps are then said to have been ended by."""

GUARD = pinning.NAME
"""A program that kills its command when it is signalled: spared until KILL, so the command can react."""

GUARDED = 7
"""How many words of a command may come before the program that it becomes, this one's name included."""


class Supervisor:
    """Runs the steps of one job, one after the other."""

    def __init__(self, folder: str, job: dict[str, Any]) -> None:
        self.folder, self.job, self.begun = folder, job, time.monotonic()
        self.deadline = Deadline(job["deadline"])
        self.head, self.spared, self.stop = 0, 0, 0
        self.ended, self.heard, self.patience = 0.0, 0.0, float("inf")
        self.status: int | None = None
        self.alone = True
        self.group = self._make_group()
        self.pumps: dict[int, Pump] = {}
        adopt_orphans()
        self.wake, inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, ORPHANED):
            signal.signal(number, lambda *_: None)  # not SIG_IGN, which the steps would inherit
        self.poll = select.poll()
        self.poll.register(self.wake, select.POLLIN)

    def run(self) -> None:
        """Run the steps and record each as it ends: its exit as the model has it, and its wall seconds."""
        with open(f"{self.folder}/{RESULTS}", "a", encoding="utf-8") as results:
            for number, step in enumerate(self.job["steps"], 1):
                begun = self.ended = time.monotonic()
                ended = self._step(number, step)
                results.write(json.dumps({"exit": ended, "wall_s": round(self.ended - begun, 4)}) + "\n")
                results.flush()
                os.fdatasync(results.fileno())
                if self.job["stop_on_failure"] and ended["kind"] != "ok":
                    break

    def _step(self, number: int, step: dict[str, Any]) -> dict[str, Any]:
        self._turn(0.0)
        if refused := self._over(float("inf"), ""):
            return refused
        streams = [Pump(f"{self.folder}/{number}-{name}", self.job["hidden"]) for name in ("stdout", "stderr")]
        try:
            self.heard, self.patience = time.monotonic(), step["idle_s"] or float("inf")
            limit = self.heard + step["timeout_s"]
            if problem := self._start(step, streams):
                return {"kind": "not_started", "detail": problem}
            return self._watch(limit, f"{step['timeout_s']:g} s", step)
        finally:
            self._sweep()
            for pump in streams:
                pump.close()

    def _watch(self, limit: float, name: str, step: dict[str, Any]) -> dict[str, Any]:
        """Wait for the step's own end, or end it for a limit that it breaks."""
        watch = Watch(step["limits"], step["cwd"], self.group)
        while self.status is None:
            if broken := watch.broken():
                return self._crushed(broken, watch)
            if over := self._over(limit, name):
                self._told_to_end(step["signals"] if self.stop != signal.SIGKILL else [])
                return over
            self._turn(min(limit, time.monotonic() + self.deadline.left(), self.heard + self.patience))
        code = os.waitstatus_to_exitcode(self.status)
        if code in TOO_LARGE:
            return {"kind": "limited", "detail": f"{size(step['limits']['file'])} in one file"}
        if code and (refused := watch.refused()):  # it ended by itself, between two looks
            return {"kind": "limited", "detail": refused}
        return {"kind": "failed" if code > 0 else "signalled", "number": abs(code)} if code else {"kind": "ok"}

    def _told_to_end(self, signals: list[tuple[str, float]]) -> None:
        """Send each signal in turn, and give whatever runs the time to react to it."""
        for number, grace_s in signals:
            self._send(getattr(signal, f"SIG{number}"))
            until = time.monotonic() + grace_s
            while not self.alone and time.monotonic() < until:
                self._turn(until)
        self.ended = time.monotonic()

    def _crushed(self, broken: str, watch: Watch) -> dict[str, Any]:
        """Kill everything of a step that broke a limit, with a priority that a thousand rivals do not have."""
        watch.urgency.be(urgent=True)
        self._sweep()
        watch.urgency.be(urgent=False)
        self.ended = time.monotonic()
        return {"kind": "limited", "detail": broken}

    def _over(self, limit: float, name: str) -> dict[str, Any] | None:
        """How the step is to be ended now by somebody else's will, if it is."""
        now = time.monotonic()
        if self.stop:
            detail = "supervisor lost" if self.stop == signal.SIGKILL else "stopped"
            return {"kind": "signalled", "number": int(self.stop), "detail": detail}
        if self.deadline.left() <= 0:
            name = "deadline"
        elif now >= self.heard + self.patience:
            name = f"silent for {self.patience:g} s"
        elif now < limit:
            return None
        return {"kind": "timed_out", "detail": name}

    def _start(self, step: dict[str, Any], streams: list[Pump]) -> str:
        """Start a step's process; return why it could not be started, or nothing."""
        reader, writer = os.pipe()
        self.status, self.head = None, os.fork()
        if not self.head:
            self._become(step, [pump.inlet for pump in streams], writer)
        for descriptor in (writer, *(pump.inlet for pump in streams)):
            os.close(descriptor)
        with open(reader, "rb") as report:
            problem = report.read().decode("utf-8", "replace")
        self.alone = False
        self.spared = self.head if GUARD in map(os.path.basename, step["argv"][:GUARDED]) else 0
        self.pumps = {pump.source: pump for pump in streams}
        for descriptor in self.pumps:
            self.poll.register(descriptor, select.POLLIN)
        return problem

    def _become(self, step: dict[str, Any], outputs: list[int], report: int) -> NoReturn:
        """In the new process: turn into the step's command, or report why not."""
        what, argv = "its session", step["argv"]
        try:
            os.setsid()
            die_with_parent(signal.SIGKILL)
            cgroups.join(self.group) if self.group else None
            constrain(step["limits"])
            if cpus := step.get("cpus"):
                what = f"processors {cpus}"
                os.sched_setaffinity(0, cpus)
                argv = pinning.fixed(argv, GUARDED)
            what = step["cwd"]
            os.chdir(what)
            what = step["stdin"] or os.devnull
            for standard, source in enumerate((os.open(what, os.O_RDONLY), *outputs)):
                os.dup2(source, standard)
            for number in range(1, 32):  # what Python ignores, and what a caller in the background does
                signal.signal(number, signal.SIG_DFL) if signal.getsignal(number) is signal.SIG_IGN else None
            what = argv[0]
            os.execvpe(what, argv, {**step["env"], MARK: self.folder})  # noqa: S606
        except (OSError, ValueError) as error:
            os.write(report, f"{what}: {getattr(error, 'strerror', None) or error}".encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def _turn(self, until: float) -> None:
        """Wait until `until` (monotonic) at most for output, an ended child or a signal; take care of it."""
        for descriptor, _ in self.poll.poll(1000 * max(0.0, min(until - time.monotonic(), TICK_S))):
            if descriptor == self.wake:
                told = os.read(self.wake, 512)
                self.stop = self.stop or next((STOPS[number] for number in told if number in STOPS), 0)
                self._reap()
            elif self.pumps[descriptor].move():
                self.heard = time.monotonic()
            else:
                self.poll.unregister(descriptor)
                del self.pumps[descriptor]

    def _make_group(self) -> str:
        """The control group of the job's steps, recorded for whoever has to end them when this process cannot."""
        threads = THREADS * max(step["limits"]["processes"] for step in self.job["steps"])
        group = cgroups.make(f"orch-{os.getpid()}-{start_ticks(os.getpid())}", threads)
        with open(f"{self.folder}/{GROUP}", "w", encoding="utf-8") as file:
            file.write(group)
        return group

    def _reap(self) -> None:
        """Collect every ended child, adopted ones too; with no child left nothing of the step is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.alone = True
                return
            if not pid:
                return
            if pid == self.head:
                self.status, self.ended = status, time.monotonic()

    def _sweep(self) -> None:
        """Kill what is left, in rounds: what a killed parent leaves is adopted and found in the next one."""
        until = time.monotonic() + 10.0  # one may hang in the kernel
        self._reap()
        while not self.alone and time.monotonic() < until:
            self._send(signal.SIGKILL)
            self._adopted(time.monotonic() + 0.02)
        while self.pumps:
            self.poll.unregister(self.pumps.popitem()[0])

    def _adopted(self, until: float) -> None:
        """Kill what becomes a child of this process, faster than it can fork: all of it has been signalled before."""
        while not self.alone and time.monotonic() < until:
            for pid in children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._turn(time.monotonic() + 0.002)
            self._reap()

    def _send(self, number: int) -> None:
        """Signal the head's group, at one stroke where it can be: nothing forks away. KILL goes to who left it, too."""
        group = self.head if self.status is None and not self.spared else 0
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number) if group else None
        for pid in below({os.getpid()}):
            with suppress(ProcessLookupError, PermissionError):
                own = os.getpgid(pid)
                if own != group and (number == signal.SIGKILL or (own == self.head and pid != self.spared)):
                    os.kill(pid, number)


def _end_group(folder: str) -> None:
    """End what is left in the job's control group, and remove it; nothing to do where there is none any more."""
    with suppress(OSError), open(f"{folder}/{GROUP}", encoding="utf-8") as file:
        if group := file.read():
            cgroups.end(group)


def main(folder: str, lock: int) -> None:
    """Run the job in `folder`, in a child of this process; `lock` is kept open in both and from the steps."""
    os.set_inheritable(lock, False)  # noqa: FBT003
    if kept():
        _end_group(folder)
        return
    with open(f"{folder}/{JOB}", encoding="utf-8") as file:
        job = json.load(file)
    for descriptor in job.get("held", ()):
        os.set_inheritable(descriptor, False)  # noqa: FBT003
    supervisor = Supervisor(folder, job)
    without = {**job, "hidden": {}, "steps": [{**step, "env": {}} for step in job["steps"]]}
    write_whole(f"{folder}/{JOB}", without)  # without the secrets
    write_whole(f"{folder}/{IDENTITY}", {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())})
    supervisor.run()
    _end_group(folder)
    wall_s = round(time.monotonic() - supervisor.begun, 4)
    write_whole(f"{folder}/{END}", {"stopped": supervisor.stop, "wall_s": wall_s})
