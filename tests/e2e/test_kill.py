"""Pulling the plug: SIGKILL of worker, engine and both, again and again through a run, changes nothing of its result.

Steps are the events that Temporal has recorded of the run and its attempts. A run is killed at every STRIDE-th of them,
from an offset on; the soak set covers all offsets, the others are one run each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from orch import Client
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.connection import connect
from orch.worker.records import read_server, read_worker
from orch.worker.state import open_state
from orch.workflows.model.view import RunStatus, RunView

pytestmark = [pytest.mark.engine]

STRIDE = 50
SOAK_OFFSETS = tuple(range(1, STRIDE, 2))

AGENT = (
    'cmd:echo started >> $(dirname "$ORCH_USAGE_FILE")/starts; sleep 0.5; '
    'echo "{\\"tokens_in\\": $ORCH_ITERATION$ORCH_CANDIDATE}" > "$ORCH_USAGE_FILE"; '
    "case $ORCH_ITERATION$ORCH_CANDIDATE in 12|21) echo 2 > level;; 23) echo 3 > level;; *) echo 1 > level;; esac"
)
"""Iteration 1 is won by candidate 2, iteration 2 by candidate 3; every start leaves a line beside its usage report."""


@dataclass
class Plug:
    """What is killed, and what was killed so far."""

    home: Home
    worker: bool
    server: bool
    kills: list[int] = field(default_factory=list)

    def pull(self, step: int) -> None:
        """SIGKILL, at once and without warning."""
        records = [read_worker(self.home) if self.worker else None, read_server(self.home) if self.server else None]
        for record in records:
            if record is not None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim = psutil.Process(record.pid)
                    victim.kill()
                    victim.wait(5)
        self.kills.append(step)


VICTIMS = pytest.mark.parametrize(
    ("worker", "server"), [(True, False), (False, True), (True, True)], ids=["worker", "engine", "both"]
)


@pytest.fixture
def own_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An engine that may be killed."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path / "state")
    open_state(home)
    asyncio.run(engine.ensure_up(home))
    yield home
    asyncio.run(engine.down(home))


@VICTIMS
async def test_killed_run_ends_like_an_uninterrupted_one(
    own_engine: Home, project: Path, worker: bool, server: bool
) -> None:
    await _compare(own_engine, project, Plug(own_engine, worker, server), offset=20)


@pytest.mark.soak
@pytest.mark.parametrize("offset", SOAK_OFFSETS)
@VICTIMS
async def test_killed_anywhere_run_ends_like_an_uninterrupted_one(
    own_engine: Home,
    project: Path,
    worker: bool,
    server: bool,
    offset: int,
    record_property: Callable[[str, object], None],
) -> None:
    plug = Plug(own_engine, worker, server)
    await _compare(own_engine, project, plug, offset=offset)
    record_property("kills", plug.kills)


async def test_agent_outlives_its_killed_worker(own_engine: Home, project: Path) -> None:
    client = Client(own_engine)
    agent = "cmd:echo started >> $(dirname $ORCH_USAGE_FILE)/starts; sleep 4; echo 3 > level"
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=(agent,))
    starts = own_engine.run(run) / "attempts/i1-c1-b1/private/starts"
    while not starts.exists():
        await asyncio.sleep(0.05)

    Plug(own_engine, worker=True, server=False).pull(0)
    await asyncio.sleep(1)
    agents = _processes("sleep 4; echo 3 > level")
    view = await client.result(run)

    assert agents
    assert view.status is RunStatus.SUCCEEDED
    assert starts.read_text().splitlines() == ["started"]


async def _compare(home: Home, project: Path, plug: Plug, *, offset: int) -> None:
    client = Client(home)
    calm = await client.result(await _start(client, project, "calm"))
    (project / "level").write_text("0\n")

    run = await _start(client, project, "killed")
    await _disturb(client, run, plug, offset)
    view = await client.result(run)

    assert len(plug.kills) >= 3
    assert _outcome(view) == _outcome(calm)
    assert (project / "level").read_text() == "3\n"
    for attempt in (home.run(run) / "attempts").glob("i[12]-c[123]-*"):
        assert (attempt / "private" / "starts").read_text().splitlines() == ["started"], attempt.name
    await _nothing_left(home, run)


async def _start(client: Client, project: Path, name: str) -> str:
    ladder = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
    return await client.start_goal(
        id=f"goal-{name}", goal="raise the level", repo=project, verify=ladder, agent=(AGENT,), candidates=3
    )


async def _disturb(client: Client, run: str, plug: Plug, offset: int) -> None:
    """Kill at every STRIDE-th recorded step until the run has ended."""
    due = offset
    while (step := await _recorded(plug.home, run)) is not None:
        if step >= due:
            plug.pull(step)
            due = step + STRIDE
            await engine.ensure_up(plug.home)


async def _recorded(home: Home, run: str) -> int | None:
    """How many events are recorded of a run and its attempts; None once the run has ended."""
    temporal = await connect(home)
    names = ["", *(f"/i{i}-c{c}-b{(i - 1) * 3 + c}" for i in (1, 2) for c in (1, 2, 3))]
    total = 0
    for name in names:
        with contextlib.suppress(RPCError):
            description = await temporal.get_workflow_handle(run + name).describe()
            if not name and description.status is not WorkflowExecutionStatus.RUNNING:
                return None
            total += description.history_length
    return total


def _outcome(view: RunView) -> Any:
    return (
        view.status,
        view.reason,
        view.usage.tokens,
        view.promoted and (view.promoted.tree, view.promoted.paths),
        [
            (i.ordinal, i.winner, i.decided_by, [(c.index, c.tree, c.rungs_passed, c.reason) for c in i.candidates])
            for i in view.iterations
        ],
    )


async def _nothing_left(home: Home, run: str) -> None:
    async with asyncio.timeout(20):
        while not (home.run(run) / "closed").exists():
            await asyncio.sleep(0.1)
    assert not list(home.run(run).glob("attempts/**/tree"))
    assert not [path for path in (*home.slots.glob("*"), *home.ports.glob("*")) if path.name.isdigit()]
    assert not list(home.root.glob("stores/*/reserved/*"))
    assert _processes(str(home.run(run))) == []


def _processes(word: str) -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if word in " ".join(p.info["cmdline"] or [])]


@pytest.fixture(name="project")
def kill_project(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A clean repository at level 0, so that both runs start from the same tree."""
    return make_repo(tmp_path / "project", {"level": "0\n"})
