"""`orch logs -f` on a run that goes on: lines come while the agent works, and it ends with the attempt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orch import Client
from orch.activities.home import Home

pytestmark = [pytest.mark.engine]

AGENT = """\
#!/bin/sh
if test "$1" = --version; then echo codex-cli 9.9.9; exit; fi
cat > /dev/null
echo '{began}'
echo '{said}'
until test -e {gate}; do sleep 0.05; done
echo 'a warning' >&2
echo done > result
printf '%s' '{ended}'
"""
"""It prints what codex would, waits for the gate, and leaves its last line without a newline."""


def event(**fields: object) -> str:
    return json.dumps(fields)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file for which the agent waits."""
    return tmp_path / "gate"


@pytest.fixture
def agent(tmp_path: Path, gate: Path) -> str:
    """The spec of a scripted program that codex's adapter starts and reads."""
    path = tmp_path / "scripted-codex"
    path.write_text(
        AGENT.format(
            gate=gate,
            began=event(type="thread.started", thread_id="0199a213-81c0-7800-8aa1-bbab2a035a53"),
            said=event(type="item.completed", item={"type": "agent_message", "text": "I wait."}),
            ended=event(type="turn.completed", usage={"input_tokens": 90, "output_tokens": 10}),
        )
    )
    path.chmod(0o755)
    return f"codex,bin={path}"


@contextmanager
def followed(home: Home, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`orch logs ARGS -f`, in a process of its own that does not outlive the test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orch.cli.main", "logs", *args, "-f"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "ORCH_STATE": str(home.root)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def run(
    client: Client, agent: str, gate: Path, make_repo: Callable[..., Path], tmp_path: Path
) -> AsyncIterator[str]:
    """A run with one attempt, just started; it is let go on and waited for at the end."""
    repo = make_repo(tmp_path / "project")
    ladder = ("test -e result",)
    started = await client.start_goal(
        goal="write it", repo=repo, verify=ladder, agent=(agent,), sandbox=False, promote="none"
    )
    yield started
    gate.touch()
    await client.result(started)


async def test_lines_come_while_the_agent_works_and_end_with_the_attempt(
    run: str, engine_home: Home, gate: Path
) -> None:
    with followed(engine_home, run) as process:
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(2)]
        waiting = process.poll() is None
        gate.touch()
        rest, said = process.communicate(timeout=60)

    assert begun == ["began: session 0199a213-81c0-7800-8aa1-bbab2a035a53\n", "I wait.\n"]
    assert waiting
    assert sorted(rest.splitlines()) == ["a warning", "ended · 100 tok in this session"]
    assert process.returncode == 0
    assert "--- agent stdout" in said


async def test_following_an_attempt_that_is_over_prints_it_whole(
    run: str, client: Client, engine_home: Home, gate: Path
) -> None:
    gate.touch()
    await client.result(run)

    with followed(engine_home, run, "--candidate", "1") as process:
        seen, _ = process.communicate(timeout=60)

    assert seen.splitlines()[1:] == ["I wait.", "ended · 100 tok in this session", "a warning"]


async def test_interrupting_leaves_the_run_alone(run: str, client: Client, engine_home: Home) -> None:
    with followed(engine_home, run) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(2)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert f"next: orch watch {run}" in said
    assert (await client.view(run)).status == "running"
