"""Leases: one holder of a device on the whole host, whoever it is and whatever becomes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities.jobs import Job, Step, end_job, run_job
from orch.activities.processes import scrubbed_environment
from orch.activities.trials import leases
from orch.activities.trials.leases import Lease, Taken, leased, take
from orch.workflows.errors import HostFaultError

HOLDER = """
import asyncio, sys
from orch.activities.trials.leases import leased
async def main():
    async with leased(sys.argv[1:], patience_s=0) as found:
        print(type(found).__name__, flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of its own."""
    folder = tmp_path / "shared"
    folder.mkdir()
    monkeypatch.setenv(leases.VARIABLE, str(folder))
    return folder


async def held(*names: str, patience_s: float = 0.0) -> Lease | Taken:
    """What whoever asks now gets; it is given back at once."""
    async with leased(names, patience_s=patience_s) as found:
        return found


def another(*names: str) -> subprocess.Popen[str]:
    """Another process that takes a lease, and says what it got."""
    argv = (sys.executable, "-c", HOLDER, *names)
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_a_device_has_one_holder_and_disjoint_sets_are_held_at_once() -> None:
    async with leased(("cpu-1", "cpu-0"), patience_s=0) as first:
        assert isinstance(first, Lease)
        assert first.names == ("cpu-0", "cpu-1")
        assert await held("cpu-2", "cpu-1") == Taken("cpu-1")
        assert isinstance(await held("cpu-2", "cpu-3"), Lease)
    assert isinstance(await held("cpu-2", "cpu-1"), Lease)


async def test_two_processes_exclude_each_other_and_a_killed_one_leaves_nothing() -> None:
    with another("cpu-0") as first, another("cpu-1") as third:
        assert first.stdout is not None
        assert third.stdout is not None
        assert first.stdout.readline() == "Lease\n"
        assert third.stdout.readline() == "Lease\n"
        with another("cpu-1", "cpu-0") as second:
            assert second.communicate("")[0] == "Taken\n"
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert isinstance(await held("cpu-0"), Lease)
        assert await held("cpu-1") == Taken("cpu-1")


async def test_who_waits_gets_it_when_it_is_free() -> None:
    async with leased(("cpu-0",), patience_s=0):
        waiting = asyncio.create_task(held("cpu-0", "cpu-1", patience_s=60.0))
        await asyncio.sleep(3 * leases.POLL_S)
        assert not waiting.done()
    found = await waiting
    assert isinstance(found, Lease)
    assert found.waited_s > 0


async def test_what_was_taken_while_another_was_waited_for_is_given_back() -> None:
    async with leased(("cpu-1",), patience_s=0):
        assert await held("cpu-0", "cpu-1") == Taken("cpu-1")
        assert isinstance(await held("cpu-0"), Lease)
        waiting = asyncio.create_task(held("cpu-0", "cpu-1", patience_s=60.0))
        await asyncio.sleep(3 * leases.POLL_S)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(await held("cpu-0"), Lease)


async def test_a_job_holds_the_lease_after_its_worker_let_go_and_no_step_can_give_it_back(tmp_path: Path) -> None:
    script = "ls -l /proc/self/fd; sleep 60"
    step = Step("s", ("sh", "-c", script), tmp_path, scrubbed_environment({}), 60.0)
    async with leased(("cpu-0",), patience_s=0) as lease:
        assert isinstance(lease, Lease)
        running = asyncio.create_task(run_job(tmp_path / "job", Job((step,), held=lease.descriptors)))
        while not (tmp_path / "job/1-stdout").exists() or not (tmp_path / "job/1-stdout").read_text():
            await asyncio.sleep(0.01)
    assert "orch-cpu-0" not in (tmp_path / "job/1-stdout").read_text()
    assert await held("cpu-0") == Taken("cpu-0")
    await asyncio.to_thread(end_job, tmp_path / "job")
    await running
    assert isinstance(await held("cpu-0"), Lease)


async def test_a_lost_supervisor_lets_go_only_when_its_trial_is_ended(tmp_path: Path) -> None:
    step = Step("s", ("sh", "-c", "echo $$ > pid; exec sleep 60"), tmp_path, scrubbed_environment({}), 60.0)
    async with leased(("cpu-0",), patience_s=0) as lease:
        assert isinstance(lease, Lease)
        running = asyncio.create_task(run_job(tmp_path / "job", Job((step,), held=lease.descriptors)))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    while isinstance(await held("cpu-0"), Taken):
        await asyncio.sleep(0.001)
    assert not Path(f"/proc/{pid}").exists()
    await running


def test_the_files_are_empty_and_another_users_can_be_locked_but_not_written(shared: Path) -> None:
    before = os.umask(0o077)
    try:
        descriptor = take("cpu-0")
    finally:
        os.umask(before)
    assert descriptor is not None
    os.close(descriptor)
    (path,) = shared.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.read_bytes() == b""


def as_another_user(question: Callable[[], object]) -> str:
    """What it answers to a user without any rights; needs root."""
    reader, writer = os.pipe()
    if not os.fork():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            os.write(writer, repr(question()).encode())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader) as answer:
        return answer.read()


@pytest.mark.skipif(bool(os.getuid()), reason="only root can be two users")
def test_two_users_exclude_each_other(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("/tmp") / f"leases-{os.getpid()}-{threading.get_native_id()}"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setenv(leases.VARIABLE, str(folder))
    try:
        descriptor = take("cpu-0")
        assert descriptor is not None
        assert as_another_user(lambda: take("cpu-0")) == "None"
        assert as_another_user(lambda: take("cpu-1") is not None) == "True"
        os.close(descriptor)
        assert as_another_user(lambda: take("cpu-0") is not None) == "True"
        assert (folder / "orch-cpu-1.lock").stat().st_uid == 65534
        assert take("cpu-1") is not None  # root, too, by another user's file
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (lambda path, aim: path.symlink_to(aim), "Too many levels of symbolic links"),
        (lambda path, _: os.mkfifo(path), "is no file"),
        (lambda path, _: path.mkdir(), "is no file"),
    ],
    ids=["link", "fifo", "folder"],
)
def test_what_somebody_planted_in_the_place_of_a_lock_is_not_followed(
    shared: Path, tmp_path: Path, plant: Callable[[Path, Path], None], said: str
) -> None:
    plant(shared / "orch-cpu-0.lock", tmp_path / "aim")
    with pytest.raises(HostFaultError, match=said):
        take("cpu-0")
    assert not (tmp_path / "aim").exists()


def test_a_lock_file_that_was_tidied_up_is_no_lease_any_more(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = take("cpu-0")
    assert first is not None
    opened = leases._opened
    (shared / "orch-cpu-0.lock").unlink()

    def gone_meanwhile(path: Path) -> int:
        monkeypatch.setattr(leases, "_opened", opened)
        descriptor = opened(path)
        path.unlink()
        return descriptor

    monkeypatch.setattr(leases, "_opened", gone_meanwhile)
    second = take("cpu-0")
    assert second is not None
    assert os.path.samestat(os.fstat(second), (shared / "orch-cpu-0.lock").stat())


def test_all_users_of_a_host_find_one_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(leases.VARIABLE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = leases.folder()
    assert str(found) in leases.FOLDERS
    assert found.stat().st_mode & 0o1002 == 0o1002
    monkeypatch.setattr(leases, "FOLDERS", (str(tmp_path), str(tmp_path / "none")))
    with pytest.raises(HostFaultError, match="no folder for the leases"):
        leases.folder()
