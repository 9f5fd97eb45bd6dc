"""Supervised jobs: how steps start and end, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orch.activities import jobs, processes, supervisor
from orch.activities.jobs import Job, Step, StepResult, run_job
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

LONG_GRACE = (("INT", 30.0), ("TERM", 30.0))
"""Signals after which a step may go on for longer than a test may take."""


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


def peak_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])


async def test_steps_end_in_their_own_ways(tmp_path: Path, shell: Callable[..., Step]) -> None:
    steps = (
        shell("echo out; echo err >&2"),
        shell("exit 3"),
        shell("kill -9 $$"),
        shell("sh -c 'kill -9 $$'; exit $?"),
        shell("sleep 30", timeout_s=0.2),
    )
    results = await run_job(tmp_path / "job", Job(steps))
    assert exits(results) == ["ok", "exit 3", "signal 9", "exit 137", "timed out (0.2 s)"]
    assert results[0].stdout.read_bytes() == b"out\n"
    assert results[0].stderr.read_bytes() == b"err\n"
    assert 0.2 <= results[4].wall_s < 20


async def test_what_cannot_be_started_says_why(tmp_path: Path, shell: Callable[..., Step]) -> None:
    (tmp_path / "plain").write_text("no program")
    missing = tmp_path / "missing"
    steps = (
        Step("a", ("no-such-program",), tmp_path, ENV, 5.0),
        Step("b", ("true",), missing, ENV, 5.0),
        Step("c", (str(tmp_path / "plain"),), tmp_path, ENV, 5.0),
        Step("d", ("true", "x" * (1 << 20)), tmp_path, ENV, 5.0),
        Step("e", ("true",), tmp_path, ENV, 5.0, missing),
        Step("f", ("true", "a\0b"), tmp_path, ENV, 5.0),
        shell("echo still here"),
    )
    results = await run_job(tmp_path / "job", Job(steps))
    assert [result.exit.kind for result in results[:6]] == [ExitKind.NOT_STARTED] * 6
    assert [result.exit.detail for result in results[:5]] == [
        "no-such-program: No such file or directory",
        f"{missing}: No such file or directory",
        f"{tmp_path / 'plain'}: Permission denied",
        "true: Argument list too long",
        f"{missing}: No such file or directory",
    ]
    assert results[6].exit.ok
    assert not missing.exists()


async def test_stop_on_failure_leaves_the_rest_out(tmp_path: Path, shell: Callable[..., Step]) -> None:
    job = Job((shell("true"), shell("false"), shell("touch ran")), stop_on_failure=True)
    assert exits(await run_job(tmp_path / "job", job)) == ["ok", "exit 1"]
    assert not (tmp_path / "ran").exists()


OF_GLIBC = 1 << 31 | 1 << 32
"""Signals 32 and 33 are the C library's own: what make starts by `posix_spawn` ignores them, and nobody can undo it."""


async def test_a_step_starts_clean(tmp_path: Path) -> None:
    script = "cd /proc/$$/fd; echo *; env | cut -d= -f1 | sort | xargs; grep -E 'Sig(Ign|Blk)' /proc/self/status"
    step = Step("s", ("/bin/sh", "-c", script), tmp_path, {"PATH": "/usr/bin:/bin", "X": "1"}, 5.0)
    (result,) = await run_job(tmp_path / "job", Job((step,)))
    descriptors, names, *signals = result.stdout.read_text().splitlines()
    assert descriptors.split() in (["0", "1", "2"], ["0", "1", "2", "3"])  # the third reads the folder
    assert {*names.split()} - {"OLDPWD", "PWD", "SHLVL", "_"} == {"ORCH_JOB", "PATH", "X"}
    assert [int(line.split()[1], 16) & ~OF_GLIBC for line in signals] == [0, 0]


async def test_stdin_is_empty_or_a_file(tmp_path: Path, shell: Callable[..., Step]) -> None:
    prompt = tmp_path / "prompt"
    prompt.write_text("-p '\"$(touch pwn)` \n✓")
    results = await run_job(tmp_path / "job", Job((shell("cat; echo end"), shell("cat", stdin=prompt))))
    assert [result.stdout.read_text() for result in results] == ["end\n", prompt.read_text()]
    assert not (tmp_path / "pwn").exists()


@pytest.mark.parametrize("stdin", ["pipe", "closed", "terminal"])
def test_an_agent_that_reads_stdin_ends_whatever_the_workers_stdin_is(tmp_path: Path, stdin: str) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "job"), "cat >/dev/null; test ! -t 0; echo done"]
    master, slave = pty.openpty()
    held = {"pipe": subprocess.PIPE, "closed": None, "terminal": slave}[stdin]
    if stdin == "closed":
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    with subprocess.Popen(command, stdin=held, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.read() == b"['ok']\n"
        assert starter.wait(30) == 0
    os.close(master)
    os.close(slave)
    assert (tmp_path / "job" / "1-stdout").read_text() == "done\n"


async def test_a_grandchild_with_the_pipe_open_does_not_delay_the_limit(
    tmp_path: Path, shell: Callable[..., Step]
) -> None:
    begun = time.monotonic()
    (result,) = await run_job(tmp_path / "job", Job((shell("sleep 3131 & sleep 3131", timeout_s=1.0),)))
    assert time.monotonic() - begun < 30
    assert result.exit == Exit(kind=ExitKind.TIMED_OUT, detail="1 s")
    assert not running("3131")


async def test_what_a_finished_step_leaves_running_is_killed(tmp_path: Path, shell: Callable[..., Step]) -> None:
    script = "trap '' TERM INT; setsid sh -c 'sleep 3232 & sleep 3232' & sleep 3232 & echo left"
    begun = time.monotonic()
    step = replace(shell(script), signals=LONG_GRACE)
    (result,) = await run_job(tmp_path / "job", Job((step,)))
    assert time.monotonic() - begun < 25  # no signal's grace is waited for
    assert result.exit.ok
    assert result.stdout.read_text() == "left\n"
    assert not running("3232")


async def test_an_agent_that_ignores_int_and_term_is_killed(tmp_path: Path, shell: Callable[..., Step]) -> None:
    script = "trap '' INT TERM; echo begun; while :; do sleep 0.1; done"
    begun = time.monotonic()
    (result,) = await run_job(tmp_path / "job", Job((shell(script, timeout_s=1.0),)))
    assert str(result.exit) == "timed out (1 s)"
    assert result.stdout.read_text() == "begun\n"
    assert 4 < time.monotonic() - begun < 30


async def test_an_agent_may_save_its_work_when_interrupted_once(tmp_path: Path, shell: Callable[..., Step]) -> None:
    script = "trap 'echo saved; exit' INT; while :; do sleep 0.05; done"
    (result,) = await run_job(tmp_path / "job", Job((shell(script, timeout_s=1.0),)))
    assert result.exit.kind is ExitKind.TIMED_OUT
    assert result.stdout.read_text() == "saved\n"


async def test_a_flood_is_capped_on_disk_and_in_memory(tmp_path: Path, shell: Callable[..., Step]) -> None:
    folder = tmp_path / "job"
    flood = shell("yes 0123456789 | head -c 300000000; echo; echo last words; touch flooded; sleep 0.5")
    task = asyncio.create_task(run_job(folder, Job((flood,))))
    await until((tmp_path / "flooded").exists, 20)
    peak = peak_kb(supervisor_of(folder)[0])
    (result,) = await task
    assert peak < 40_000
    size = result.stdout.stat().st_size
    with result.stdout.open("rb") as file:
        file.seek(supervisor.CAP)
        rest = file.read()
    result.stdout.unlink()
    assert size < supervisor.CAP + supervisor.TAIL + 100
    assert rest.startswith(b"\n[orch: ")
    assert rest.endswith(b"last words\n")


async def test_output_is_kept_byte_for_byte(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(b'x' * 5_000_000 + b'\\n\\xff\\xf0\\x9f' * 1000 + b'\\nresult\\n')"
    step = Step("s", (sys.executable, "-c", script), tmp_path, ENV, 20.0)
    (result,) = await run_job(tmp_path / "job", Job((step,)))
    assert result.stdout.read_bytes() == b"x" * 5_000_000 + b"\n\xff\xf0\x9f" * 1000 + b"\nresult\n"


async def test_a_deadline_in_the_past_starts_nothing(tmp_path: Path, shell: Callable[..., Step]) -> None:
    job = Job((shell("touch ran"), shell("touch ran")), deadline=time.time() - 1)
    assert exits(await run_job(tmp_path / "job", job)) == ["timed out (deadline)"] * 2
    assert not (tmp_path / "ran").exists()


async def test_a_deadline_ends_the_running_step(tmp_path: Path, shell: Callable[..., Step]) -> None:
    job = Job((shell("true"), shell("sleep 30"), shell("true")), deadline=time.time() + 0.5)
    results = await run_job(tmp_path / "job", job)
    assert exits(results) == ["ok", "timed out (deadline)", "timed out (deadline)"]


async def test_two_at_once_share_one_run(tmp_path: Path, shell: Callable[..., Step]) -> None:
    job = Job((shell("echo ran >> count; sleep 0.2"),))
    first, second = await asyncio.gather(*(run_job(tmp_path / "job", job) for _ in range(2)))
    assert first == second
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_eight_jobs_run_side_by_side(tmp_path: Path, shell: Callable[..., Step]) -> None:
    begun = time.monotonic()
    job = Job((shell("sleep 2"),))
    done = await asyncio.gather(*(run_job(tmp_path / f"job{n}", job) for n in range(8)))
    assert [exits(results) for results in done] == [["ok"]] * 8
    assert time.monotonic() - begun < 12


async def test_silence_ends_a_step_and_keeps_what_it_said(tmp_path: Path, shell: Callable[..., Step]) -> None:
    step = replace(shell("echo one line; sleep 30"), idle_s=1.5, timeout_s=60.0)
    (result,) = await run_job(tmp_path / "job", Job((step,)))
    assert str(result.exit) == "timed out (silent for 1.5 s)"
    assert result.wall_s < 25
    assert result.stdout.read_text() == "one line\n"


async def test_a_step_that_goes_on_talking_is_not_silent(tmp_path: Path, shell: Callable[..., Step]) -> None:
    step = replace(shell("for i in 1 2 3 4 5 6; do sleep 0.5; echo $i >&2; done"), idle_s=2.5)
    (result,) = await run_job(tmp_path / "job", Job((step,)))
    assert result.exit.ok


async def test_a_step_is_stopped_by_the_signals_it_knows(tmp_path: Path, shell: Callable[..., Step]) -> None:
    listens = "trap 'echo INT' INT; trap 'echo TERM; exit' TERM; while :; do sleep 0.05; done"
    steps = (
        replace(shell(listens), timeout_s=1.0, signals=(("TERM", 2.0),)),
        replace(shell(listens), timeout_s=1.0, signals=()),
    )
    results = await run_job(tmp_path / "job", Job(steps))
    assert [result.stdout.read_text() for result in results] == ["TERM\n", ""]


@pytest.mark.parametrize("ended", [True, False])
def test_job_that_never_began_leaves_no_secrets(ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step("step", ("true",), tmp_path, {**ENV, "TOKEN": "sk-do-not-tell"}, 20.0)
    job = Job((step,), hidden={"TOKEN": "sk-do-not-tell"})
    folder = tmp_path / "job"
    if ended:
        folder.mkdir()
        for name in (supervisor.JOB, f"{supervisor.JOB}.new"):
            (folder / name).write_text("sk-do-not-tell")  # a worker died before it started the supervisor
        jobs.end_job(folder)
    else:
        monkeypatch.setattr(supervisor, "PROGRAM", str(tmp_path / "none"))
        with pytest.raises(HostFaultError, match="did not start"):
            asyncio.run(run_job(folder, job))

    assert [path for path in folder.iterdir() if b"sk-do-not-tell" in path.read_bytes()] == []
