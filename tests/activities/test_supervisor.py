"""The supervisor by itself: its signals, its lock, its pumps, its view of other processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from orch.activities import processes, supervisor
from orch.activities.limits import StepLimits

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a supervisor of one shell script; whatever still runs at the end is killed."""
    started = []

    def go(script: str, **job: Any) -> subprocess.Popen[bytes]:
        step = {
            "name": "s",
            "argv": ["/bin/sh", "-c", script],
            "cwd": str(tmp_path),
            "env": {"PATH": os.environ["PATH"]},
            "timeout_s": 20,
            "stdin": None,
            "idle_s": None,
            "signals": supervisor.SIGNALS,
            "limits": asdict(StepLimits.of_this_host()),
        }
        value = {"steps": [step], "stop_on_failure": False, "deadline": None, "hidden": {}, **job}
        supervisor.write_whole(str(tmp_path / supervisor.JOB), value)
        lock = os.open(tmp_path / supervisor.LOCK, os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        argv = [sys.executable, "-I", "-S", supervisor.PROGRAM, str(tmp_path), str(lock)]
        process = subprocess.Popen(argv, pass_fds=[lock], start_new_session=True)
        os.close(lock)
        started.append(process)
        return process

    yield go
    for process in started:
        process.kill()
        process.wait()
    processes.end_marked(supervisor.MARK, str(tmp_path))


def wait_for(path: Path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["exit"] for line in (folder / supervisor.RESULTS).read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_step_and_is_recorded(tmp_path: Path, start: Start, number: int) -> None:
    process = start("touch begun; sleep 30")
    wait_for(tmp_path / "begun")
    process.send_signal(number)
    assert process.wait(20) == 0
    assert results(tmp_path) == [{"kind": "signalled", "number": number, "detail": "stopped"}]
    assert json.loads((tmp_path / supervisor.END).read_text())["stopped"] == number


def test_a_hangup_changes_nothing(tmp_path: Path, start: Start) -> None:
    process = start("touch begun; sleep 0.5; echo done")
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) == 0
    assert results(tmp_path) == [{"kind": "ok"}]


def test_the_lock_is_held_as_long_as_it_lives_and_not_by_its_steps(tmp_path: Path, start: Start) -> None:
    process = start("touch begun; sleep 30")
    wait_for(tmp_path / "begun")
    with pytest.raises(BlockingIOError):
        start("true")
    process.send_signal(signal.SIGTERM)
    process.wait()
    with (tmp_path / supervisor.LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


HIDDEN = "setsid env -i sh -c 'sleep 41 & echo $! > pid; mv pid begun' & sleep 30"
"""A step with a process in a session of its own, without the mark, whose parent is gone."""


@pytest.mark.parametrize("victim", ["supervisor", "keeper"])
def test_nothing_survives_a_killed_supervisor_or_keeper_however_it_hides(
    tmp_path: Path, start: Start, victim: str
) -> None:
    process = start(HIDDEN)
    wait_for(tmp_path / "begun")
    identity = json.loads((tmp_path / supervisor.IDENTITY).read_text())
    os.kill(identity["pid"] if victim == "supervisor" else process.pid, signal.SIGKILL)
    process.wait()
    hidden = int((tmp_path / "begun").read_text())
    end = time.monotonic() + 20
    group = (tmp_path / supervisor.GROUP).read_text()
    while supervisor.start_ticks(hidden) or supervisor.start_ticks(identity["pid"]) or (group and Path(group).exists()):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_nothing_survives_the_end_of_a_step_however_it_hides(tmp_path: Path, start: Start) -> None:
    process = start(HIDDEN.replace("& sleep 30", "& while ! test -e begun; do sleep 0.01; done"))
    assert process.wait(20) == 0
    assert results(tmp_path) == [{"kind": "ok"}]
    assert supervisor.start_ticks(int((tmp_path / "begun").read_text())) is None


def test_job_whose_keeper_was_killed_is_a_lost_one(tmp_path: Path, start: Start) -> None:
    process = start("touch begun; sleep 30")
    wait_for(tmp_path / "begun")
    process.kill()
    wait_for(tmp_path / supervisor.END)
    assert results(tmp_path) == [{"kind": "signalled", "number": 9, "detail": "supervisor lost"}]


def test_it_says_who_it_is_before_the_first_step(tmp_path: Path, start: Start) -> None:
    process = start("cp supervisor.json seen; echo $PPID > parent")
    assert process.wait(20) == 0
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["pid"] == int((tmp_path / "parent").read_text())
    assert seen["start_ticks"] > 0


def test_orphans_of_a_long_step_are_collected_while_it_runs(tmp_path: Path, start: Start) -> None:
    process = start("for i in 1 2 3; do (sleep 0.05 &) ; done; sleep 0.5; touch begun; sleep 0.3")
    wait_for(tmp_path / "begun")
    pid = json.loads((tmp_path / supervisor.IDENTITY).read_text())["pid"]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(children) == 1
    assert process.wait(20) == 0


def test_a_full_disk_loses_output_but_not_the_stream() -> None:
    pump = supervisor.Pump("/dev/full", {})
    os.write(pump.inlet, b"lost")
    assert pump.move()
    os.write(pump.inlet, b"lost too")
    os.close(pump.inlet)
    assert pump.move()
    assert not pump.move()
    assert pump.dropped == 12
    pump.close()


def test_a_zombie_does_not_live() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert supervisor.start_ticks(process.pid) is None
    process.wait()
    assert supervisor.start_ticks(os.getpid())


def test_descendants_are_found_to_the_last_generation() -> None:
    with subprocess.Popen(["sh", "-c", "sh -c 'sleep 30 & echo; wait' & wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = supervisor.below({process.pid})
        assert len(found) == 2
        for pid in (process.pid, *found):
            os.kill(pid, signal.SIGKILL)


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    supervisor.write_whole(str(tmp_path / "x"), {"a": "\udcff"})
    assert json.loads((tmp_path / "x").read_text()) == {"a": "\udcff"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
