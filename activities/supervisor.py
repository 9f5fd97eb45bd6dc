"""The supervisor of one job: it runs the steps, outlives the worker, and leaves nothing running.

A program of the standard library alone (`python -I -S supervisor.py FOLDER LOCK_FD`). FOLDER holds one job:

    job.json            the steps; written by the starter
    lock                locked as long as the supervisor lives (LOCK_FD is inherited and only kept open)
    supervisor.json     its pid and start time: steps may have run
    1-stdout  1-stderr  the output of each step, capped
    results.jsonl       a line for each step that ended
    exit.json           written last: the results are final
"""

# ruff: noqa: PTH105, PTH123, PTH208
from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

JOB, LOCK, IDENTITY, RESULTS, END = "job.json", "lock", "supervisor.json", "results.jsonl", "exit.json"
"""The files of a job's folder."""

MARK = "ORCH_JOB"
"""The variable that names the job's folder in the environment of everything that belongs to it."""

GUARD = "bwrap"
"""A program that kills its command when it is signalled: spared until KILL, so the command can react."""

SIGNALS = (("INT", 1.5), ("TERM", 1.5))
"""What is sent when a limit is reached, and the seconds to react to it; then comes KILL."""

CAP, TAIL, CHUNK = 64 << 20, 64 << 10, 256 << 10
"""Bytes kept of a stream from its start and from its end, and read at once."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def start_ticks(pid: int) -> int | None:
    """When the process started, in ticks since boot; None when it is gone or a zombie."""
    return int(fields[19]) if (fields := _stat(pid)) else None


def below(roots: set[int]) -> list[int]:
    """Every living process that descends from one of `roots`, these not included."""
    parents = {pid: int(fields[1]) for pid in pids() if (fields := _stat(pid))}
    found: list[int] = []
    level = roots
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found.extend(level)
    return found


def pids() -> list[int]:
    """All processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def write_whole(path: str, value: object) -> None:
    """Write a JSON file, readable by its owner only, that is complete or not there."""
    with open(f"{path}.new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(value, file)
    os.replace(f"{path}.new", path)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None for what is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().decode("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields if fields and fields[0] not in "ZX" else None


class Pump:
    """Moves one stream from a pipe to a file; past the cap it drains, and keeps the last bytes."""

    def __init__(self, path: str) -> None:
        self.source, self.inlet = os.pipe()
        os.set_blocking(self.source, False)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.room, self.dropped, self.tail = CAP, 0, b""

    def move(self) -> bool:
        """Move one chunk; False when there is nothing to read (of a readable pipe: its end)."""
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return False
        kept, rest = data[: self.room], data[self.room :]
        self.room -= len(kept)
        self._write(kept)
        if rest:
            self.dropped += len(rest)
            self.tail = (self.tail + rest)[-TAIL:]
        return bool(data)

    def close(self) -> None:
        """Move what the pipe still holds, tell what was dropped, and close."""
        for _ in range(8):  # more than a pipe holds; whoever cannot be killed may go on writing
            self.move()
        if self.dropped:
            gone = self.dropped - len(self.tail)
            self._write(b"\n[orch: %d bytes of output dropped here]\n" % gone + self.tail)
        os.close(self.source)
        os.close(self.file)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self.file, data) :]
        except OSError:  # no space: the job goes on without its output
            self.dropped, self.room = self.dropped + len(data), 0


class Supervisor:
    """Runs the steps of one job, one after the other."""

    def __init__(self, folder: str, job: dict[str, Any]) -> None:
        self.folder, self.job = folder, job
        self.deadline: float = float("inf") if job["deadline"] is None else job["deadline"]
        self.deadline_too = time.monotonic() + self.deadline - time.time()  # for a wall clock that is set back
        self.head, self.spared, self.stop = 0, 0, 0
        self.ended, self.heard, self.patience = 0.0, 0.0, float("inf")
        self.status: int | None = None
        self.alone = True
        self.pumps: dict[int, Pump] = {}
        self.libc = ctypes.CDLL(None)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.wake, inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
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
        streams = [Pump(f"{self.folder}/{number}-{name}") for name in ("stdout", "stderr")]
        try:
            self.heard, self.patience = time.monotonic(), step["idle_s"] or float("inf")
            limit = self.heard + step["timeout_s"]
            if problem := self._start(step, streams):
                return {"kind": "not_started", "detail": problem}
            return self._watch(limit, f"{step['timeout_s']:g} s", step["signals"])
        finally:
            self._sweep()
            for pump in streams:
                pump.close()

    def _watch(self, limit: float, name: str, signals: list[tuple[str, float]]) -> dict[str, Any]:
        while self.status is None:
            if over := self._over(limit, name):
                for number, grace_s in signals:
                    self._send(getattr(signal, f"SIG{number}"))
                    until = time.monotonic() + grace_s
                    while not self.alone and time.monotonic() < until:
                        self._turn(until)
                self.ended = time.monotonic()
                return over
            self._turn(min(limit, self.deadline_too, self.heard + self.patience))
        code = os.waitstatus_to_exitcode(self.status)
        return {"kind": "failed" if code > 0 else "signalled", "number": abs(code)} if code else {"kind": "ok"}

    def _over(self, limit: float, name: str) -> dict[str, Any] | None:
        """How the step is to be ended now by somebody else's will, if it is."""
        now = time.monotonic()
        if self.stop:
            return {"kind": "signalled", "number": self.stop, "detail": "stopped"}
        if now >= self.deadline_too or time.time() >= self.deadline:
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
        self.spared = self.head if GUARD in map(os.path.basename, step["argv"][:7]) else 0  # behind enter.py
        self.pumps = {pump.source: pump for pump in streams}
        for descriptor in self.pumps:
            self.poll.register(descriptor, select.POLLIN)
        return problem

    def _become(self, step: dict[str, Any], outputs: list[int], report: int) -> NoReturn:
        """In the new process: turn into the step's command, or report why not."""
        what = step["cwd"]
        try:
            os.setsid()
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.chdir(what)
            what = step["stdin"] or os.devnull
            for standard, source in enumerate((os.open(what, os.O_RDONLY), *outputs)):
                os.dup2(source, standard)
            for number in range(1, 32):  # what Python ignores, and what a caller in the background does
                signal.signal(number, signal.SIG_DFL) if signal.getsignal(number) is signal.SIG_IGN else None
            what = step["argv"][0]
            os.execvpe(what, step["argv"], {**step["env"], MARK: self.folder})  # noqa: S606
        except (OSError, ValueError) as error:
            os.write(report, f"{what}: {getattr(error, 'strerror', None) or error}".encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def _turn(self, until: float) -> None:
        """Wait until `until` (monotonic) at most for output, an ended child or a signal; take care of it."""
        for descriptor, _ in self.poll.poll(1000 * max(0.0, min(until - time.monotonic(), 1.0))):
            if descriptor == self.wake:
                self.stop = self.stop or next((n for n in os.read(self.wake, 512) if n in (2, 15)), 0)  # INT, TERM
                self._reap()
            elif self.pumps[descriptor].move():
                self.heard = time.monotonic()
            else:
                self.poll.unregister(descriptor)
                del self.pumps[descriptor]

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
            self._turn(time.monotonic() + 0.02)
            self._reap()
        while self.pumps:
            self.poll.unregister(self.pumps.popitem()[0])

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


def main(folder: str, lock: int) -> None:
    """Run the job in `folder`; `lock` is kept open here and from the steps."""
    os.set_inheritable(lock, False)  # noqa: FBT003
    with open(f"{folder}/{JOB}", encoding="utf-8") as file:
        supervisor = Supervisor(folder, job := json.load(file))
    write_whole(f"{folder}/{JOB}", {**job, "steps": [{**step, "env": {}} for step in job["steps"]]})  # it holds secrets
    write_whole(f"{folder}/{IDENTITY}", {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())})
    supervisor.run()
    write_whole(f"{folder}/{END}", {"stopped": supervisor.stop})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    os._exit(0)
