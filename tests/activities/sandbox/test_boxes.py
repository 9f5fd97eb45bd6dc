"""Boxes by bubblewrap: what a command in one can and cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from orch.activities import processes, supervisor
from orch.activities.jobs import Job, Step, StepResult, run_job
from orch.activities.sandbox.registry import LAUNCHERS
from orch.activities.sandbox.view import Needs, box
from orch.workflows.model.exit import ExitKind

ENV = processes.scrubbed_environment({})


def boxed(folder: Path, argv: tuple[str, ...], *, network: bool = False) -> tuple[str, ...]:
    """A command whose working copy is `folder`."""
    state = folder.parent / "state"
    state.mkdir(exist_ok=True)
    needs = Needs(argv, os.environ["PATH"], state, tmp=folder.parent / "tmp", tree=folder, expose=(folder.parent,))
    return LAUNCHERS["bwrap"].wrap(argv, box(needs, network=network))


Signals = tuple[tuple[str, float], ...]


async def fenced(
    folder: Path, script: str, *, network: bool = False, timeout_s: float = 20.0, signals: Signals = supervisor.SIGNALS
) -> StepResult:
    """Run a script in `folder`, where it may write."""
    argv = boxed(folder, ("sh", "-c", script), network=network)
    (result,) = await run_job(folder.parent / "job", Job((Step("s", argv, folder, ENV, timeout_s, signals=signals),)))
    return result


def running(mark: str) -> list[int]:
    """Processes whose command line holds a mark."""
    found = []
    for pid in supervisor.pids():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "tmp").mkdir()
    return folder


async def test_writing_works_inside_and_nowhere_else(tmp_path: Path, inside: Path) -> None:
    escapes = f"echo out > {tmp_path}/file; echo out > ~/orch-test; umount /; mount -o remount,rw /"
    script = f"echo in > file; pwd; id -u; {escapes}"
    result = await fenced(inside, script)
    assert (inside / "file").read_text() == "in\n"
    assert not (tmp_path / "file").exists()
    assert result.stdout.read_text() == f"{inside}\n{os.getuid()}\n"
    assert not result.exit.ok


async def test_without_network_only_its_own_loopback_is_there(inside: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (
            "python3 - <<'E'\nimport socket\n"
            "own = socket.create_server(('127.0.0.1', 0)); socket.create_connection(own.getsockname())\n"
            f"try: socket.create_connection(('127.0.0.1', {port}), 1)\nexcept OSError: print('refused')\nE"
        )
        result = await fenced(inside, script)
    assert result.stdout.read_text() == "refused\n"
    assert result.exit.ok


async def test_with_network_the_host_is_reached(inside: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {server.getsockname()[1]}))'"
        assert (await fenced(inside, script, network=True)).exit.ok


@pytest.mark.parametrize(("script", "shown"), [("exit 3", "exit 3"), ("kill -9 $$", "exit 137"), (":", "ok")])
async def test_the_status_passes_through(inside: Path, script: str, shown: str) -> None:
    assert str((await fenced(inside, script)).exit) == shown


async def test_a_fenced_command_hears_the_interrupt_and_may_finish(inside: Path) -> None:
    script = "trap 'echo saved > state; exit' INT; while :; do sleep 0.05; done"
    result = await fenced(inside, script, timeout_s=2.0)
    assert result.exit.kind is ExitKind.TIMED_OUT
    assert (inside / "state").read_text() == "saved\n"


async def test_nothing_fenced_outlives_the_command(inside: Path) -> None:
    begun = time.monotonic()
    script = "setsid sleep 3636 & setsid sh -c 'trap \"\" INT TERM; sleep 3636' & echo out"
    result = await fenced(inside, script, signals=(("INT", 30.0), ("TERM", 30.0)))
    assert result.exit.ok
    assert time.monotonic() - begun < 25  # no signal's grace is waited for
    assert not running("3636")


async def test_a_killed_supervisor_takes_the_fenced_command_with_it(tmp_path: Path, inside: Path) -> None:
    task = asyncio.create_task(fenced(inside, "setsid env -i sleep 3737 & touch begun; sleep 3737"))
    while not (inside / "begun").exists():
        await asyncio.sleep(0.01)
    identity = json.loads((tmp_path / "job" / supervisor.IDENTITY).read_bytes())
    os.kill(identity["pid"], signal.SIGKILL)
    assert (await task).exit.detail == "supervisor lost"
    assert not running("3737")


async def test_others_cannot_be_seen_nor_killed(inside: Path) -> None:
    result = await fenced(inside, f"kill -{signal.SIGTERM} {os.getpid()}; ls /proc | grep -c '^[0-9]'")
    assert int(result.stdout.read_text()) < 10


def test_a_linked_folder_is_writable_by_its_real_name(tmp_path: Path, inside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(inside)
    argv = boxed(link, ("touch", str(link / "x")))
    assert processes.run(processes.Command(argv, link, ENV), timeout_s=30).exit.ok
    assert (inside / "x").exists()


def test_a_setting_of_the_kernel_cannot_be_written_even_by_root(inside: Path) -> None:
    """Root needs no capability for that: a program named in core_pattern would run on the host."""
    script = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do : >> $f && echo open; done"
    done = processes.run(processes.Command(boxed(inside, ("sh", "-c", script)), inside, ENV), timeout_s=30)
    assert done.stdout == b""
