"""Supervised jobs: ordered steps that go on when their worker dies, found again by their folder."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..workflows.errors import HostFaultError
from ..workflows.model.exit import Exit, ExitKind
from . import processes, supervisor
from .job_records import Job, Step, StepResult, recorded, recorded_results, results_of

__all__ = ["LOST", "Job", "Step", "StepResult", "attach", "end_job", "find_jobs", "results_of", "run_job"]

LOG = "supervisor.log"
POLL_S = 0.02
"""How often is looked where nothing can be waited for."""

STOP_PATIENCE_S = 2.0 + sum(grace for _, grace in supervisor.SIGNALS)
"""How long a supervisor may take to end its step before it is killed."""

HINT = "check this host's free space, process limits and the rights of that folder"
LOST = Exit(kind=ExitKind.SIGNALLED, number=signal.SIGKILL, detail="supervisor lost")


async def run_job(folder: Path, job: Job) -> tuple[StepResult, ...]:
    """Run a job, or attach to the one that runs or ran in `folder`, and return its results.

    A folder holds one job for ever: once it may have started, `job` is not looked at again. Cancelling only
    detaches (see `end_job`). A job whose supervisor was lost is ended, its unfinished steps are `LOST`.

    Raises:
        HostFaultError: the supervisor cannot be started.
    """
    folder = _real(folder)
    while not (folder / supervisor.END).exists():
        pid = _start(folder, job)  # not in a thread: who cancels must find nothing, or a job that can be ended
        await _supervisor_gone(folder, pid)
        if (folder / supervisor.IDENTITY).exists():
            await asyncio.to_thread(_settle, folder)
        elif pid is not None:
            _forget(folder)
            raise HostFaultError(f"the supervisor of {folder} did not start: {_last_words(folder)}", hint=HINT)
    return results_of(folder)


async def attach(folder: Path) -> tuple[StepResult, ...] | None:
    """Wait for the end of the job that runs or ran in `folder`, as `run_job` does; None when none ever began there."""
    folder = _real(folder)
    if not (folder / supervisor.LOCK).exists():
        return None
    await _supervisor_gone(folder, None)
    if not (folder / supervisor.IDENTITY).exists():
        return None
    await asyncio.to_thread(_settle, folder)
    return results_of(folder)


def end_job(folder: Path) -> None:
    """End everything of a job (INT, TERM, KILL); return when nothing is left. No-op when over or never begun."""
    folder = _real(folder)
    patience = time.monotonic() + STOP_PATIENCE_S
    asked = False
    while folder.exists() and _supervised(folder):
        if time.monotonic() > patience:
            processes.end_marked(supervisor.MARK, str(folder))
        elif not asked and (identity := _identity(folder)):
            asked = processes.send(*identity, signal.SIGTERM)
        time.sleep(POLL_S)
    if (folder / supervisor.IDENTITY).exists():
        _settle(folder)
    elif folder.exists():
        _forget(folder)


def find_jobs(root: Path) -> list[Path]:
    """The folders under `root` of jobs that still run: by a supervisor, or in what a lost one left."""
    real = _real(root)
    folders = {Path(folder) for folder in processes.marked(supervisor.MARK).values()}
    return sorted(root / folder.relative_to(real) for folder in folders if folder.is_relative_to(real))


def _start(folder: Path, job: Job) -> int | None:
    """Start the supervisor and return its pid; None when there is or was one already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder) as lock:
            if lock is None or (folder / supervisor.IDENTITY).exists():
                return None
            supervisor.write_whole(str(folder / supervisor.JOB), recorded(job))
            argv = (sys.executable, "-I", "-S", supervisor.PROGRAM, str(folder), str(lock))
            env = processes.scrubbed_environment({supervisor.MARK: str(folder)})
            command = processes.Command(argv, folder, env)
            return processes.spawn_detached(command, log=folder / LOG, pass_fds=(lock, *job.held, *job.passed))
    except OSError as error:
        raise HostFaultError(f"the supervisor of {folder} cannot be started: {error}", hint=HINT) from error


@contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    """Hold the job's lock (a supervisor that inherits it holds it on); None when somebody else holds it."""
    opened = os.open(folder / supervisor.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    lock = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 3)  # a worker without stdin would hand it over as stdin
    os.close(opened)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lock
    finally:
        os.close(lock)


def _supervised(folder: Path) -> bool:
    with _locked(folder) as lock:
        return lock is None


async def _supervisor_gone(folder: Path, pid: int | None) -> None:
    """Wait until nobody holds the job's lock; `pid` is the supervisor's where it is known."""
    while _supervised(folder):
        handle = _handle(folder, pid)
        if handle is None:
            await asyncio.sleep(POLL_S)
            continue
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(handle, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)


def _handle(folder: Path, pid: int | None) -> int | None:
    """A descriptor that becomes readable when the supervisor ends; None while there is none to be had."""
    identity = _identity(folder)
    pid = pid or (identity and identity[0])
    if not pid:
        return None
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    if identity and not processes.alive(*identity):
        os.close(handle)
        return None
    return handle


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = _json(folder / supervisor.IDENTITY)
    except FileNotFoundError:
        return None
    return found["pid"], found["start_ticks"]


def _settle(folder: Path) -> None:
    """End what a lost supervisor left and make the record whole; nothing to do when it is whole."""
    with _locked(folder) as lock:
        if lock is None or (folder / supervisor.END).exists():
            return
        processes.end_marked(supervisor.MARK, str(folder))
        _end_group(folder)
        job, known = _json(folder / supervisor.JOB), recorded_results(folder)
        missing = len(job["steps"]) - len(known)
        if job["stop_on_failure"]:
            missing = min(missing, 1) if all(result["exit"]["kind"] == ExitKind.OK for result in known) else 0
        lost = json.dumps({"exit": LOST.model_dump(mode="json"), "wall_s": 0.0})
        with (folder / supervisor.RESULTS).open("a", encoding="utf-8") as file:
            file.writelines(f"\n{lost}\n" for _ in range(missing))  # the line before may be torn
        supervisor.write_whole(str(folder / supervisor.END), {"lost": missing})


def _forget(folder: Path) -> None:
    """Delete what a job that never began was to be: no supervisor came to take the secrets out of it."""
    with _locked(folder) as lock:
        if lock is not None and not (folder / supervisor.IDENTITY).exists():
            for name in (supervisor.JOB, f"{supervisor.JOB}.new"):
                (folder / name).unlink(missing_ok=True)


def _end_group(folder: Path) -> None:
    """End what took the mark off itself, where the job had a control group."""
    with suppress(FileNotFoundError):
        if group := (folder / supervisor.GROUP).read_text(encoding="utf-8"):
            supervisor.end_group(group)


def _real(folder: Path) -> Path:
    """The folder's one name, whatever links lead to it: it marks the processes of the job."""
    return folder.resolve()


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _last_words(folder: Path) -> str:
    lines = (folder / LOG).read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
