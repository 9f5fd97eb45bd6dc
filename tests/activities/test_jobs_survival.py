"""Supervised jobs: what survives whose death, and how a job is ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities import jobs, processes, supervisor
from orch.activities.jobs import Job, Step, StepResult, end_job, find_jobs, run_job
from orch.workflows.errors import HostFaultError
from orch.workflows.model.exit import Exit, ExitKind

ENV = processes.scrubbed_environment({})

STARTER = """
import asyncio, sys
from pathlib import Path
from orch.activities.jobs import Job, Step, run_job
from orch.activities.processes import scrubbed_environment
folder, script = Path(sys.argv[1]), sys.argv[2]
step = Step("s", ("sh", "-c", script), folder.parent, scrubbed_environment({}), 20.0)
print([str(result.exit) for result in asyncio.run(run_job(folder, Job((step,))))], flush=True)
"""


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Step]:
    """A step that runs a shell script in the test's folder."""

    def make(script: str, *, timeout_s: float = 20.0, stdin: Path | None = None) -> Step:
        return Step("step", ("sh", "-c", script), tmp_path, ENV, timeout_s, stdin)

    return make


def exits(results: tuple[StepResult, ...]) -> list[str]:
    return [str(result.exit) for result in results]


def running(mark: str) -> list[int]:
    """Processes whose command line holds a mark."""
    found = []
    for pid in supervisor.pids():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line and pid != os.getpid() and processes.start_ticks(pid):
            found.append(pid)
    return found


async def until(condition: Callable[[], object], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.01)


def supervisor_of(folder: Path) -> tuple[int, int]:
    identity = jobs._identity(folder)
    assert identity is not None
    return identity


async def test_the_worker_may_be_killed(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    script = "echo ran >> count; sleep 1; echo done"
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, str(folder), script)
    await until((tmp_path / "count").exists)
    worker.kill()
    await worker.wait()
    assert find_jobs(tmp_path) == [folder]
    results = await run_job(folder, Job((shell("touch never"),)))
    assert exits(results) == ["ok"]
    assert results[0].stdout.read_text() == "done\n"
    assert (tmp_path / "count").read_text() == "ran\n"
    assert not (tmp_path / "never").exists()
    assert find_jobs(tmp_path) == []


async def test_a_lost_supervisor_is_reported_and_nothing_runs_again(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    script = "setsid sleep 3333 & echo ran >> count; sleep 3333"
    task = asyncio.create_task(run_job(folder, Job((shell("true"), shell(script), shell("true")))))
    await until((tmp_path / "count").exists)
    os.kill(supervisor_of(folder)[0], signal.SIGKILL)
    results = await task
    assert exits(results) == ["ok", "signal 9", "signal 9"]
    assert results[1].exit.detail == "supervisor lost"
    assert not running("3333")
    assert await run_job(folder, Job((shell("true"),))) == results
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_a_lost_gate_ends_at_the_step_that_was_lost(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    job = Job((shell("true"), shell("touch ready; sleep 30"), shell("true")), stop_on_failure=True)
    task = asyncio.create_task(run_job(folder, job))
    await until((tmp_path / "ready").exists)
    os.kill(supervisor_of(folder)[0], signal.SIGKILL)
    assert exits(await task) == ["ok", "signal 9"]


async def test_a_torn_record_is_a_lost_step(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    job = Job((shell("true"), shell("true")))
    await run_job(folder, job)
    (folder / supervisor.END).unlink()
    record = folder / supervisor.RESULTS
    record.write_bytes(record.read_bytes()[:-20])
    assert exits(await run_job(folder, job)) == ["ok", "signal 9"]


async def test_a_starter_that_died_before_the_start_costs_nothing(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / supervisor.JOB).write_text("{")
    (folder / supervisor.LOCK).touch()
    assert exits(await run_job(folder, Job((shell("true"),)))) == ["ok"]


async def test_cancelling_only_detaches(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    job = Job((shell("touch begun; sleep 0.5; echo done"),))
    task = asyncio.create_task(run_job(folder, job))
    await until((tmp_path / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (result,) = await run_job(folder, job)
    assert result.stdout.read_text() == "done\n"


async def test_ending_a_job_ends_all_of_it(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    script = "trap 'echo told; exit' INT; setsid sleep 3434 & touch begun; while :; do sleep 0.05; done"
    task = asyncio.create_task(run_job(folder, Job((shell(script), shell("touch ran")))))
    await until((tmp_path / "begun").exists)
    await asyncio.to_thread(end_job, folder)
    assert not running("3434")
    results = await task
    assert [result.exit for result in results] == [Exit(kind=ExitKind.SIGNALLED, number=15, detail="stopped")] * 2
    assert results[0].stdout.read_text() == "told\n"
    assert not (tmp_path / "ran").exists()
    end_job(folder)


async def test_a_supervisor_that_does_not_react_is_killed(
    tmp_path: Path, shell: Callable[..., Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "STOP_PATIENCE_S", 0.3)
    folder = tmp_path / "job"
    task = asyncio.create_task(run_job(folder, Job((shell("touch begun; sleep 3535"),))))
    await until((tmp_path / "begun").exists)
    os.kill(supervisor_of(folder)[0], signal.SIGSTOP)
    await asyncio.to_thread(end_job, folder)
    assert not running("3535")
    assert exits(await task) == ["signal 9"]


def test_ending_what_never_began_is_nothing(tmp_path: Path) -> None:
    end_job(tmp_path / "job")
    assert not (tmp_path / "job").exists()


async def test_a_supervisor_that_cannot_start_is_a_host_fault(
    tmp_path: Path, shell: Callable[..., Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostFaultError, match="cannot be started"):
        await run_job(tmp_path / "file" / "job", Job((shell("true"),)))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(HostFaultError, match="did not start"):
        await run_job(tmp_path / "job", Job((shell("true"),)))
    monkeypatch.undo()
    assert exits(await run_job(tmp_path / "job", Job((shell("true"),)))) == ["ok"]


async def test_the_environment_is_kept_from_others(tmp_path: Path, shell: Callable[..., Step]) -> None:
    await run_job(tmp_path / "job", Job((shell("true"),)))
    assert (tmp_path / "job" / supervisor.JOB).stat().st_mode & 0o777 == 0o600
