"""Limits of a step: bombs are ended at once, wholly, by the name of the limit; who keeps within them is left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orch.activities import processes, supervisor
from orch.activities.jobs import Job, Step, StepResult, find_jobs, run_job
from orch.activities.limits import StepLimits
from orch.activities.sandbox.registry import LAUNCHERS
from orch.activities.sandbox.view import Needs, box
from orch.activities.supervisor.clocks import Deadline
from orch.activities.supervisor.limits import OOM_SCORE
from orch.workflows.errors import RefusedError
from orch.workflows.model.exit import ExitKind

ENV = processes.scrubbed_environment({})
SMALL = replace(StepLimits.of_this_host(), processes=40)

AT_FORKS = {"reached a limit (40 processes)", "reached a limit (80 threads)"}
"""The second where the kernel was faster: it lets a control group have no more."""

FORKS = """
import os, time
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        if not os.fork():
            %s
            os.fork()
    except OSError:
        time.sleep(0.01)
"""
THREADS = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(20,)).start()"
MEMORY = "import time\nx = []\nwhile True: x.append(bytearray(b'x') * (16 << 20)); time.sleep(0.01)"
FILES = """
import itertools
for number in itertools.count():
    with open(f'f{number}', 'wb') as file:
        file.write(bytes(1 << 20))
"""

Run = Callable[..., Awaitable[StepResult]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run one step to its end, and check that nothing of it is left."""

    async def go(*argv: str, limits: StepLimits = SMALL, sandbox: bool = False) -> StepResult:
        tree, state = tmp_path / "tree", tmp_path / "state"
        for folder in (tree, state):
            folder.mkdir(exist_ok=True)
        needs = Needs(argv, os.environ["PATH"], state, tmp=tmp_path / "tmp", tree=tree, expose=(tmp_path,))
        fenced = LAUNCHERS["bwrap"].wrap(argv, box(needs, network=False)) if sandbox else argv
        (result,) = await run_job(tmp_path / "job", Job((Step("s", fenced, tree, ENV, 20.0, limits=limits),)))
        assert find_jobs(tmp_path) == []
        return result

    return go


@pytest.mark.parametrize("sandbox", [False, True], ids=["bare", "sandbox"])
@pytest.mark.parametrize("first", ["pass", "os.setsid()"], ids=["one-session", "many"])
async def test_fork_bomb_is_ended_at_once(run: Run, first: str, sandbox: bool) -> None:
    result = await run("python3", "-c", FORKS % first, sandbox=sandbox)

    assert str(result.exit) in AT_FORKS
    assert result.wall_s < 10


async def test_thread_bomb_is_ended(run: Run) -> None:
    assert str((await run("python3", "-c", THREADS)).exit) == "reached a limit (80 threads)"


async def test_memory_is_counted_over_all_processes_together(run: Run) -> None:
    script = f'for i in 1 2 3; do python3 -c "{MEMORY}" & done; wait'
    limits = replace(SMALL, memory=240 << 20)

    assert str((await run("sh", "-c", script, limits=limits)).exit) == "reached a limit (240 MiB of memory)"


async def test_files_in_the_sandboxs_memory_count_as_memory(run: Run) -> None:
    script = "dd if=/dev/zero of=/dev/shm/a bs=1M count=200 2>/dev/null; sleep 10"
    result = await run("sh", "-c", script, limits=replace(SMALL, memory=120 << 20), sandbox=True)

    assert str(result.exit) == "reached a limit (120 MiB of memory)"


async def test_memory_that_is_shared_counts_once(run: Run) -> None:
    script = "import os, time\nx = b'x' * (100 << 20)\n[os.fork() for _ in range(3)]\ntime.sleep(1)"

    assert (await run("python3", "-c", script, limits=replace(SMALL, memory=300 << 20))).exit.ok


@pytest.mark.parametrize("then", ["", "; exit $?"], ids=["program", "shell"])
async def test_file_that_is_too_large_is_never_written_whole(run: Run, tmp_path: Path, then: str) -> None:
    script = f"dd if=/dev/zero of=big bs=1M count=8 2>/dev/null{then}"
    result = await run("sh", "-c", script, limits=replace(SMALL, file=2 << 20))

    assert str(result.exit) == "reached a limit (2 MiB in one file)"
    assert (tmp_path / "tree" / "big").stat().st_size == 2 << 20


async def test_who_fills_the_disk_is_ended_at_the_floor(run: Run, tmp_path: Path) -> None:
    floor = free(tmp_path) - (32 << 20)
    result = await run("python3", "-c", FILES, limits=replace(SMALL, disk_floor=floor))

    assert result.exit.kind is ExitKind.LIMITED
    assert result.exit.detail.endswith("of free disk")


async def test_who_did_not_fill_the_disk_works_on_beside_who_did(run: Run, tmp_path: Path) -> None:
    floor = free(tmp_path) * 3 // 2

    assert (await run("sh", "-c", "echo x > f; sleep 0.5", limits=replace(SMALL, disk_floor=floor))).exit.ok


async def test_disk_with_no_room_at_all_ends_everybody(run: Run, tmp_path: Path) -> None:
    result = await run("sleep", "5", limits=replace(SMALL, disk_floor=free(tmp_path) * 3))

    assert result.exit.kind is ExitKind.LIMITED


async def test_step_leaves_no_core_and_is_what_a_machine_without_memory_ends_first(run: Run) -> None:
    result = await run("sh", "-c", "ulimit -c; ulimit -f; cat /proc/self/oom_score_adj")
    core, file, score = result.stdout.read_text().split()

    assert (core, int(file) * 512, int(score)) == ("0", SMALL.file, OOM_SCORE)


async def test_bomb_of_one_step_leaves_the_next_one_its_turn(tmp_path: Path) -> None:
    bomb = Step("bomb", ("python3", "-c", FORKS % "pass"), tmp_path, ENV, 20.0, limits=SMALL)
    results = await run_job(tmp_path / "job", Job((bomb, replace(bomb, argv=("echo", "here")))))

    assert str(results[0].exit) in AT_FORKS
    assert results[1].exit.ok


async def test_control_group_of_a_job_is_gone_with_it(run: Run, tmp_path: Path) -> None:
    await run("sh", "-c", "setsid sleep 30 & true")
    group = (tmp_path / "job" / supervisor.GROUP).read_text()

    assert not (group and Path(group).exists())


def free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def test_operator_sets_limits_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PROCESSES", "300"), ("MEMORY", "1.5g"), ("FILE", "64 MiB")):
        monkeypatch.setenv(f"ORCH_LIMIT_{name}", value)
    found = StepLimits.of_this_host()

    assert (found.processes, found.memory, found.file) == (300, 3 << 29, 64 << 20)
    assert found.for_agent() == found


def test_agent_may_have_more_processes_than_a_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCH_LIMIT_PROCESSES", raising=False)
    found = StepLimits.of_this_host()

    assert (found.processes, found.for_agent().processes) == (1024, 2048)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PROCESSES", "0"), ("PROCESSES", "many"), ("MEMORY", "0"), ("FILE", "4 pounds"), ("FILE", "-1")],
)
def test_limit_that_cannot_be_read_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"ORCH_LIMIT_{name}", value)

    with pytest.raises(RefusedError, match=f"ORCH_LIMIT_{name}: '{value}'"):
        StepLimits.of_this_host()


class Clocks:
    """The clocks of a machine, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.boot = 1e9, 50.0
        monkeypatch.setattr(time, "time", lambda: self.wall)
        monkeypatch.setattr(time, "clock_gettime", lambda _: self.boot)


def test_clock_that_is_set_neither_brings_a_deadline_nearer_nor_puts_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    deadline = Deadline(clocks.wall + 60)
    clocks.wall += 3600
    assert deadline.left() == 60
    clocks.wall -= 7200
    clocks.boot += 59
    assert deadline.left() == 1


def test_machine_that_slept_past_a_deadline_has_passed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    deadline = Deadline(clocks.wall + 60)
    clocks.wall += 3600
    clocks.boot += 3600
    assert deadline.left() < 0


async def test_who_ends_by_itself_when_it_may_have_no_more_processes_reached_the_limit(run: Run) -> None:
    script = "i=0; while [ $i -lt 200 ]; do sleep 2 & i=$((i + 1)); done; wait"
    result = await run("sh", "-c", script, limits=replace(SMALL, processes=5))

    assert result.exit.kind is ExitKind.LIMITED
