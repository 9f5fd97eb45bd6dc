"""What people see of a round that runs: queue, device set, lanes and tickets, and a lane's workspace from inside."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.activities.home import Home
from orch.workflows.errors import RefusedError
from orch.workflows.model.review import Extension
from orch.workflows.model.round.lane_view import LaneState
from orch.workflows.model.round.view import RoundView

pytestmark = [pytest.mark.engine]

Orch = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = (sys.executable, "-m", "orch.cli.main")
GO = "until [ -e ../desk/go ]; do sleep 0.05; done"
"""Wait for the test."""


async def _look(client: Client, run: str) -> RoundView:
    view = await client.look(run)
    assert isinstance(view, RoundView)
    return view


def _stands(view: RoundView) -> bool:
    """Whether one ticket is measured, the next one is built, and both other lanes are over."""
    device = view.devices[0]
    return bool(device.ticket and device.ahead and view.lanes[0].end and view.lanes[2].end)


async def _stand(client: Client, rounds: ModuleType, scripted: ModuleType, folder: Path) -> str:
    lines = (GO, scripted.turn("layout", 0.5), scripted.SUBMIT, "echo aside > aside.txt", "sleep 600")
    lanes = [
        rounds.Lane("parse", scripted.in_trial("parse", "import time; time.sleep(50)")),
        rounds.Lane("layout", scripted.cmd(*lines)),
        rounds.Lane("emit", scripted.linked("emit", "/etc/passwd")),
    ]
    repo = rounds.synthetic(folder / "repo")
    plan = rounds.write_plan(folder / "plans", repo, lanes, campaign={"campaign": f"c-{uuid.uuid4().hex[:8]}"})
    run = await client.start_round(plan, repo=repo)
    desk = client.home.run(run) / "attempts/i1-c2-b2/desk"
    async with asyncio.timeout(90):
        while not _stands(view := await _look(client, run)):
            if view.devices[0].ticket and view.lanes[1].state is LaneState.WORKING:
                (desk / "go").touch()
            await asyncio.sleep(0.1)
        while not (desk.parent / "tree/aside.txt").exists() and not list(desk.parent.glob("upper/aside.txt")):
            await asyncio.sleep(0.05)
    return run


async def _cancel(client: Client, run: str) -> None:
    await client.cancel(run)
    await client.result(run, RoundView)


@pytest.fixture(scope="module")
def run(
    engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A round that stands still: a ticket of `parse` is measured, one of `layout` waits, one of `emit` was rejected."""
    name = asyncio.run(_stand(Client(engine_home), rounds, scripted, tmp_path_factory.mktemp("standing")))
    yield name
    asyncio.run(_cancel(Client(engine_home), name))


@pytest.fixture
def environment(engine_home: Home) -> dict[str, str]:
    """Of a command."""
    return {**os.environ, "ORCH_STATE": str(engine_home.root)}


@pytest.fixture
def orch(environment: dict[str, str]) -> Orch:
    """Run a command to its end, without a terminal."""

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        argv = (*PROGRAM, *args)
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return call


def plain(text: str) -> list[str]:
    """Lines with times and the ends of tickets' names as they are not from run to run, and one space for many."""
    text = re.sub(r"\b(\d+m)?\d+(\.\d+)?s\b", "Ns", re.sub(r"\b(r1-\w+)-[0-9a-f]{8}\b", r"\1-H", text))
    return [" ".join(re.sub(r", \d+% of the time.*", "", line).split()) for line in text.splitlines()]


QUEUE = [
    "queue: running, 1 ticket waiting",
    "device cpu: measuring r1-parse-H, next r1-layout-H; held Ns by 1 measurement",
]
LANES = [
    "lane plane agent attempts tickets best cost time state",
    "parse algorithm set -e printf 'FACT… 1/1 1/6 - unknown Ns done",
    "layout algorithm set -e until [ -e g… 1/1 1/6 - - - agent at work",
    "emit algorithm set -e printf 'FACT… 1/1 1/6 - unknown Ns done",
]
TICKETS = [
    "ticket gain in unit waited held state",
    "r1-emit-H - - - - rejected: a link that leads",
    "r1-parse-H - - - - measuring",
    "r1-layout-H - - - - queued, next on cpu",
]


def begins(lines: list[str]) -> list[str]:
    """The tickets' lines by their names, as much of each as is known: how much of a detail is shown is the screen's."""
    found = {line.split()[0]: line for line in lines[: len(TICKETS)]}
    return [found[known.split()[0]][: len(known)] for known in TICKETS]


def test_watch_once_shows_queue_device_lanes_and_tickets_of_a_round_that_runs(run: str, orch: Orch) -> None:
    done = orch("watch", run, "--once")

    lines = plain(done.stdout)
    assert done.returncode == 0
    assert lines[0] == f"{run} running"
    shown = {title: lines.index(title) for title in ("lanes", "tickets")}
    assert lines[shown["lanes"] - 3 : shown["lanes"] - 1] == QUEUE
    assert lines[shown["lanes"] + 1 : shown["tickets"] - 1] == LANES
    assert begins(lines[shown["tickets"] + 1 :]) == TICKETS
    assert lines[-1] == f"next: orch watch {run}"


def test_watch_prints_what_has_happened_as_json_lines_and_leaves_the_round_alone(
    run: str, environment: dict[str, str], engine_home: Home
) -> None:
    with subprocess.Popen(
        (*PROGRAM, "watch", run, "--json"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        found = []
        for line in process.stdout:
            found.append(json.loads(line))
            if [event["type"] for event in found].count("ticket_taken") == 2:
                break
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert process.returncode == 130
    assert run.encode() in said
    assert asyncio.run(_look(Client(engine_home), run)).ended_at is None


def test_watch_on_a_terminal_of_80_columns_draws_all_of_it(run: str, environment: dict[str, str]) -> None:
    """Spare columns go, the words at the end of each line stay, and nothing is wider or longer than the screen."""
    frame, status = _drawn((*PROGRAM, "watch", run), environment, rows=24, columns=80)

    assert status == 130
    assert max(map(len, frame)) <= 80
    assert len(frame) < 24
    lines = plain("\n".join(frame))
    assert lines[0].startswith(f"{run} running Ns")
    assert lines[1] == QUEUE[0]
    assert lines[2].startswith("device cpu: measuring r1-parse-H, next r1-layout-H; held")
    assert lines[4:8] == [
        "lane plane attempts tickets best cost time state",
        "parse algorithm 1/1 1/6 - unknown Ns done",
        "layout algorithm 1/1 1/6 - - - agent at work",
        "emit algorithm 1/1 1/6 - unknown Ns done",
    ]
    assert begins(lines[9:]) == TICKETS
    assert lines[-1].startswith("running: searching · 3 tickets of 3 lanes")


def _drawn(argv: tuple[str, ...], env: dict[str, str], *, rows: int, columns: int) -> tuple[list[str], int]:
    """The last frame that a command drew on a terminal before it was interrupted, and its exit status."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen(argv, env={**env, "TERM": "xterm"}, stdin=terminal, stdout=terminal, stderr=terminal) as it:
        os.close(terminal)
        text, frame, until = b"", [""], time.monotonic() + 60
        while time.monotonic() < until and not ("on devices" in frame[-1] and "next on" in "".join(frame)):
            text += os.read(screen, 1 << 16)
            frame = _frames(text)[-1] or [""]
        it.send_signal(signal.SIGINT)
        status = it.wait(60)
    os.close(screen)
    return frame, status


def _frames(text: bytes) -> list[list[str]]:
    """What was drawn between one erasing of the lines before and the next."""
    parts = re.split(r"(?:\r?\x1b\[(?:2K|1A))+", text.decode(errors="replace"))
    clean = (re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part) for part in parts)
    return [part.splitlines() for part in clean]


LOOK = """
cat engine/layout/knob.py aside.txt; git status --porcelain; ls -d .orch
echo mine > engine/layout/knob.py; exit 7
"""


def test_shell_shows_what_lies_in_a_lanes_workspace_and_leaves_that_alone(
    run: str, orch: Orch, engine_home: Home
) -> None:
    done = orch("shell", run, "--lane", "layout", "--", "sh", "-c", LOOK)

    lines = ["FACTOR = 0.5", 'ANSWER = "right"', "aside", " M engine/layout/knob.py", "?? aside.txt"]
    assert (done.returncode, done.stdout.splitlines()) == (7, lines)
    assert "cannot access '.orch'" in done.stderr
    (own,) = (engine_home.run(run) / "attempts/i1-c2-b2").glob("*/engine/layout/knob.py")
    assert own.read_text().splitlines() == lines[:2]
    assert not list(engine_home.run(run).glob("shell-*"))


def test_shell_of_a_lane_that_is_over_leads_to_its_ticket(run: str, orch: Orch) -> None:
    refused = orch("shell", run, "--lane", "parse", "--", "true")
    hint = refused.stderr.splitlines()[-1].partition("orch ")[2].split()
    shown = orch(*hint, "--", "sh", "-c", "git status --porcelain; cat engine/parse/knob.py")

    assert refused.returncode == 2
    assert "lane parse has no workspace any more: done" in refused.stderr
    assert shown.stdout.splitlines()[:2] == [" M engine/parse/knob.py", "FACTOR = 0.5"]


async def test_what_steers_a_goal_is_refused_for_a_round(run: str, client: Client) -> None:
    for steered in (client.note(run, "look there"), client.extend(run, Extension(tokens=9)), client.approve(run)):
        with pytest.raises(RefusedError, match="is a round: its plan is frozen"):
            await steered
