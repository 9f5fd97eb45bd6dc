"""Boxes by a real podman: `pytest -m containers`, on a host where `podman run --rootfs /:O true` works."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from orch.activities import processes, supervisor
from orch.activities.jobs import Job, Step, StepResult, run_job
from orch.activities.sandbox.container import Container
from orch.activities.sandbox.denials import denials
from orch.activities.sandbox.view import Needs, box
from orch.workflows.model.exit import ExitKind

pytestmark = pytest.mark.containers


async def contained(tmp_path: Path, script: str, *, timeout_s: float = 60.0) -> StepResult:
    """Run a script in a container, with `inside` as its working copy."""
    for name in ("inside", "tmp", "state"):
        (tmp_path / name).mkdir(exist_ok=True)
    argv = ("sh", "-c", script)
    needs = Needs(argv, os.environ["PATH"], tmp_path / "state", tmp=tmp_path / "tmp", tree=tmp_path / "inside")
    wrapped = Container("podman").wrap(argv, box(needs, network=False))
    environment = processes.scrubbed_environment({"MARK": "kept"})
    (result,) = await run_job(tmp_path / "job", Job((Step("s", wrapped, tmp_path / "inside", environment, timeout_s),)))
    return result


def test_everything_is_denied() -> None:
    assert [one for one in denials(Container("podman")) if not one.denied] == []


async def test_programs_folder_environment_and_status_are_those_of_the_command(tmp_path: Path) -> None:
    result = await contained(tmp_path, "git init -q . && pwd && echo $MARK && id -u && exit 3")
    assert result.stdout.read_text().split() == [str(tmp_path / "inside"), "kept", str(os.getuid())]
    assert str(result.exit) == "exit 3"
    assert (tmp_path / "inside/.git").is_dir()


async def test_a_time_limit_ends_the_container(tmp_path: Path) -> None:
    result = await contained(tmp_path, "sleep 4646", timeout_s=3)
    assert result.exit.kind is ExitKind.TIMED_OUT
    assert not _running("4646")


async def test_a_killed_supervisor_takes_the_container_with_it(tmp_path: Path) -> None:
    task = asyncio.create_task(contained(tmp_path, "touch begun; sleep 4747"))
    while not (tmp_path / "inside/begun").exists():
        await asyncio.sleep(0.05)
    identity = json.loads((tmp_path / "job" / supervisor.IDENTITY).read_bytes())
    os.kill(identity["pid"], signal.SIGKILL)
    assert (await task).exit.detail == "supervisor lost"
    assert not _running("4747")


def _running(mark: str) -> list[int]:
    found = []
    for pid in supervisor.pids():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
