"""The door to processes: commands, short helpers, detached processes, identities and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orch.activities import processes
from orch.activities.processes import Command, run, scrubbed_environment
from orch.workflows.model.exit import Exit, ExitKind

ENV = scrubbed_environment({})


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Callable[[str], tuple[int, int]]]:
    """Start a detached shell script, wait for its file `ready`, and return its identity."""
    started: list[tuple[int, int]] = []

    def go(script: str) -> tuple[int, int]:
        pid = processes.spawn_detached(Command(("sh", "-c", script), tmp_path, ENV), log=tmp_path / "log")
        ticks = processes.start_ticks(pid)
        assert ticks is not None
        started.append((pid, ticks))
        wait_until((tmp_path / "ready").exists)
        return pid, ticks

    yield go
    for identity in started:
        processes.end(*identity, grace_s=0)


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def shell(script: str, cwd: Path, **env: str) -> Command:
    return Command(("sh", "-c", script), cwd, {**ENV, **env})


def test_a_short_command_gets_input_and_gives_both_streams(tmp_path: Path) -> None:
    done = run(shell("cat; echo err >&2; exit 4", tmp_path), timeout_s=30, stdin=b"a\0\xff")
    assert done == processes.Completed(Exit(kind=ExitKind.FAILED, number=4), b"a\0\xff", b"err\n")


@pytest.mark.parametrize(
    ("script", "shown"), [("true", "ok"), ("kill -15 $$", "signal 15"), ("sleep 30", "timed out (1.5 s)")]
)
def test_a_short_command_ends_in_one_of_these_ways(tmp_path: Path, script: str, shown: str) -> None:
    assert str(run(shell(script, tmp_path), timeout_s=1.5).exit) == shown


def test_a_short_command_that_cannot_start_is_a_value(tmp_path: Path) -> None:
    assert run(Command(("no-such-program",), tmp_path, ENV), timeout_s=30).exit.kind is ExitKind.NOT_STARTED
    assert run(shell("true", tmp_path / "missing"), timeout_s=30).exit.kind is ExitKind.NOT_STARTED
    assert run(Command(("true", "\0"), tmp_path, ENV), timeout_s=30).exit.kind is ExitKind.NOT_STARTED


def test_a_short_command_does_not_wait_for_what_it_left(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run(shell("sleep 30 & echo $!", tmp_path), timeout_s=10)
    assert done.exit.ok
    assert time.monotonic() - begun < 9
    wait_until(lambda: processes.start_ticks(int(done.stdout)) is None)


def test_a_short_command_may_close_its_streams_and_go_on(tmp_path: Path) -> None:
    done = run(shell("exec >&- 2>&-; sleep 0.2; exit 5", tmp_path), timeout_s=30)
    assert str(done.exit) == "exit 5"


def test_the_output_of_a_short_command_is_capped(tmp_path: Path) -> None:
    done = run(shell("head -c 20000000 /dev/zero", tmp_path), timeout_s=20)
    assert done.exit.ok
    assert len(done.stdout) == processes.OUTPUT_CAP


def test_a_detached_process_has_its_own_session_and_no_input(
    tmp_path: Path, detached: Callable[[str], tuple[int, int]]
) -> None:
    identity = detached("cat; echo to log; echo and errors >&2; touch ready; sleep 30")
    assert processes.alive(*identity)
    assert os.getsid(identity[0]) == identity[0]
    assert (tmp_path / "log").read_text() == "to log\nand errors\n"


def test_a_detached_process_leaves_no_zombie(detached: Callable[[str], tuple[int, int]]) -> None:
    pid, ticks = detached("touch ready; sleep 0.2")
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert not processes.alive(pid, ticks)


def test_an_identity_is_more_than_a_number() -> None:
    pid = os.getpid()
    ticks = processes.start_ticks(pid)
    assert ticks is not None
    assert processes.alive(pid, ticks)
    assert not processes.alive(pid, ticks + 1)
    assert not processes.send(pid, ticks + 1, signal.SIGKILL)
    assert not processes.send(1 << 22, 1, signal.SIGKILL)


def test_ending_a_process_ends_its_session_and_descendants(
    tmp_path: Path, detached: Callable[[str], tuple[int, int]]
) -> None:
    script = "sleep 30 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; touch ready; sleep 30' & wait"
    identity = detached(f"trap '' INT TERM; {script}")
    processes.end(*identity, grace_s=0.2)
    left = [identity[0], *map(int, (tmp_path / "pids").read_text().split())]
    assert [pid for pid in left if processes.start_ticks(pid)] == []
    processes.end(*identity, grace_s=0.2)


def test_a_process_that_listens_ends_by_itself(tmp_path: Path, detached: Callable[[str], tuple[int, int]]) -> None:
    identity = detached("trap 'echo bye; exit' INT; touch ready; while :; do sleep 0.05; done")
    begun = time.monotonic()
    processes.end(*identity)
    assert time.monotonic() - begun < 4.5  # less than an interrupt's grace
    assert (tmp_path / "log").read_text() == "bye\n"


def test_marked_processes_are_found_and_killed(tmp_path: Path) -> None:
    command = shell("env -i sleep 30 & echo $! > pid; mv pid ready; wait", tmp_path, TEST_MARK=str(tmp_path))
    pid = processes.spawn_detached(command, log=tmp_path / "log")
    wait_until((tmp_path / "ready").exists)
    assert processes.marked("TEST_MARK")[pid] == str(tmp_path)
    processes.end_marked("TEST_MARK", str(tmp_path))
    assert processes.marked("TEST_MARK") == {}
    assert processes.start_ticks(pid) is None
    assert processes.start_ticks(int((tmp_path / "ready").read_text())) is None


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "SOME_API_KEY", "LC_TIME", "WANTED"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("ORCH_PASS_ENV", "WANTED, GIT_DIR,CLAUDECODE,MISSING")
    passed = scrubbed_environment({"HOME": "/h", "PATH": "/p"})
    assert passed["PATH"] == "/p"
    assert {"WANTED", "LC_TIME", "HOME"} <= passed.keys()
    assert not {"GIT_DIR", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "SOME_API_KEY", "MISSING"} & passed.keys()


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (("agent", "--api-key", "abc", "-p", "two words"), "agent --api-key *** -p 'two words'"),
        (("agent", "--token=abc", "--max-tokens", "100"), "agent '--token=***' --max-tokens 100"),
        (("env", "MY_SECRET=abc", "x"), "env 'MY_SECRET=***' x"),
        (("git", "clone", "https://me:abc@host/x"), "git clone 'https://me:***@host/x'"),
        (("curl", "-H", "Authorization: Bearer abc"), "curl -H 'Authorization: Bearer ***'"),
        (("agent", "sk-abcdefghijk"), "agent ***"),
        (("pytest", "tests/test_token.py"), "pytest tests/test_token.py"),
    ],
)
def test_a_shown_command_keeps_secrets(argv: tuple[str, ...], shown: str) -> None:
    quoted = Command(argv, Path("/"), {}).shown().replace("'", "")
    assert quoted == shown.replace("'", "")


def test_an_interrupted_caller_leaves_no_command_behind(tmp_path: Path) -> None:
    script = (
        "import sys, os; from pathlib import Path; from orch.activities.processes import *;"
        "run(Command(('sh', '-c', 'echo $$ > pid; mv pid ready; sleep 99'), Path('.'), dict(os.environ)), timeout_s=99)"
    )
    caller = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "ready").exists)
    caller.send_signal(signal.SIGINT)
    caller.wait(20)
    wait_until(lambda: processes.start_ticks(int((tmp_path / "ready").read_text())) is None)
