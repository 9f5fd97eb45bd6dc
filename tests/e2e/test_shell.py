"""`orch shell`: a candidate's workspace from the inside, and nothing of it afterwards."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client

pytestmark = [pytest.mark.engine]

PROGRAM = (sys.executable, "-m", "orch.cli.main", "shell")

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
async def run(client: Client, project: Path) -> Any:
    """A run whose first candidate has ended and whose second is at work; the agents' files hold what set-up made."""
    (project / ".gitignore").write_text("*.log\ndeps\n")
    (project / "deps").mkdir()
    (project / "deps/tool").write_text("carried\n")
    options: dict[str, Any] = {
        "goal": "raise the level",
        "repo": project,
        "verify": ("grep -q 3 level",),
        "carry": ("deps",),
        "setup": "cat deps/tool > built",
        "promote": "none",
        "agent": (
            "cmd:echo 3 > level; rm draft.txt; echo new > made.txt; chmod +x notes.txt",
            "cmd:echo half > made.txt; touch $ORCH_TMP/ready; sleep 60",
        ),
    }
    name = await client.start_goal(**options)
    attempts = client.home.run(name) / "attempts"
    async with asyncio.timeout(60):
        while not (attempts / "i1-c1-b1/measure/verdict.json").exists() or not list(attempts.glob("*-c2-*/tmp/ready")):
            await asyncio.sleep(0.05)
    yield name
    await client.cancel(name)
    await client.result(name)


@pytest.fixture
def shell(client: Client) -> Shell:
    """`orch shell ARGS`, without a terminal."""

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ORCH_STATE": str(client.home.root)}
        return subprocess.run((*PROGRAM, *args), env=env, capture_output=True, text=True, check=False, timeout=60)

    return call


LOOK = """
git status --porcelain; cat level made.txt deps/tool built; pwd; echo $ORCH_CANDIDATE $HOME
echo mine > level; rm made.txt; exit 7
"""


async def test_shell_shows_what_the_agent_left_and_throws_away_what_is_changed(
    run: str, shell: Shell, client: Client, project: Path, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    before = fingerprint(project)

    first, again = [await asyncio.to_thread(shell, run, "--candidate", "1", "--", "sh", "-c", LOOK) for _ in range(2)]
    live = await asyncio.to_thread(shell, run, "--candidate", "2", "--", "sh", "-c", "cat made.txt level")
    unknown = await asyncio.to_thread(shell, run, "--candidate", "9", "--", "true")
    missing = await asyncio.to_thread(shell, run, "--candidate", "1", "--", "no-such-program")

    *lines, where, who = first.stdout.splitlines()
    candidate, home = who.split()
    status = [" D draft.txt", " M level", " M notes.txt", "?? built", "?? made.txt"]
    assert lines == [*status, "3", "new", "carried", "carried"]
    assert (first.returncode, candidate) == (7, "1")
    assert Path(where).parent == Path(home).parent
    assert Path(where).parent.name.startswith("shell-")
    assert again.stdout.splitlines()[:-2] == lines
    assert live.stdout == "half\n0\n"
    assert (unknown.returncode, "it has 1, 2" in unknown.stderr) == (2, True)
    assert missing.returncode != 0
    assert not list(client.home.run(run).glob("shell-*"))
    assert not [name for name in client.home.ports.glob("*") if name.name.isdigit() and "b10" in name.read_text()]
    assert fingerprint(project) == before


async def test_shell_manages_jobs_in_a_terminal_and_leaves_nothing_when_a_signal_ends_it(
    run: str, client: Client
) -> None:
    """An interrupt ends the job and not the shell; the exit status is passed on."""
    keys = [b"echo up $((40+1))\n", b"sleep 99\n", b"\x03", b"echo still $((40+2))\n", b"exit 9\n"]
    (text, status), ended = await asyncio.gather(
        asyncio.to_thread(_typed, client, run, keys), asyncio.to_thread(_ended, client, run)
    )

    assert b"thrown away" in text
    assert b"still 42" in text
    assert b"no job control" not in text
    assert status == 9
    assert ended == 128 + signal.SIGTERM
    assert not list(client.home.run(run).glob("shell-*"))


def _ended(client: Client, run: str) -> int:
    """The exit status of an `orch shell` whose command was running when it was told to end."""
    env, ready = {**os.environ, "ORCH_STATE": str(client.home.root)}, "echo ready; exec sleep 77"
    argv = (*PROGRAM, run, "--candidate", "1", "--", "sh", "-c", ready)
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        return process.wait(60)


def _typed(client: Client, run: str, keys: list[bytes]) -> tuple[bytes, int]:
    """Type into `orch shell` in a terminal of its own; what was shown, and the exit status.

    The first line waits in the terminal for the shell; the others are typed once it has answered that, with 41.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"ORCH_STATE": str(client.home.root), "SHELL": "/bin/bash", "PS1": "ready> "})
        os.execv(PROGRAM[0], (*PROGRAM, run, "--candidate", "1"))
    text, until = b"", time.monotonic() + 60
    waiting = list(keys)
    os.set_blocking(terminal, False)
    while time.monotonic() < until:
        try:
            data = os.read(terminal, 1 << 16)
        except BlockingIOError:
            time.sleep(0.2)
            if waiting and (b"thrown away" if len(waiting) == len(keys) else b"up 41") in text:
                time.sleep(0.3)
                os.write(terminal, waiting.pop(0))
            continue
        except OSError:
            break
        text += data
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
