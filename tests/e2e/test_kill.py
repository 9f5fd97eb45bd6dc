"""Pulling the plug: SIGKILL of worker, engine and both, again and again through a run, changes nothing of its result.

Steps are the events that Temporal has recorded of the run and its attempts. A run is killed at every STRIDE-th of them,
from an offset on; the soak set covers all offsets for each victim, the ordinary one is a single run whose victims take
turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.home import Home
from orch.workflows.model.view import RunStatus, RunView

from .plug import STARTS, VICTIMS, Plug, disturb, engine_of_its_own, nothing_left, processes_with, starts_in

pytestmark = [pytest.mark.engine]

STRIDE = 50
SOAK_OFFSETS = tuple(range(1, STRIDE, 2))

AGENT = (
    f"cmd:{STARTS}; sleep 0.5; "
    'echo "{\\"tokens_in\\": $ORCH_ITERATION$ORCH_CANDIDATE}" > "$ORCH_USAGE_FILE"; '
    "case $ORCH_ITERATION$ORCH_CANDIDATE in 12|21) echo 2 > level;; 23) echo 3 > level;; *) echo 1 > level;; esac"
)
"""Iteration 1 is won by candidate 2, iteration 2 by candidate 3; every start leaves a line beside its usage report."""


@pytest.fixture
def own_engine(tmp_path: Path) -> Iterator[Home]:
    """An engine that may be killed."""
    with engine_of_its_own(tmp_path) as home:
        yield home


async def test_killed_run_ends_like_an_uninterrupted_one(own_engine: Home, project: Path) -> None:
    plugs = [Plug(own_engine, *victims) for victims in VICTIMS.values()]

    await _compare(own_engine, project, *plugs, offset=20, stride=100)

    assert all(plug.kills for plug in plugs)


@pytest.mark.soak
@pytest.mark.parametrize("offset", SOAK_OFFSETS)
@pytest.mark.parametrize("victims", VICTIMS)
async def test_killed_anywhere_run_ends_like_an_uninterrupted_one(
    own_engine: Home,
    project: Path,
    victims: str,
    offset: int,
    record_property: Callable[[str, object], None],
) -> None:
    plug = Plug(own_engine, *VICTIMS[victims])
    await _compare(own_engine, project, plug, offset=offset)
    record_property("kills", plug.kills)


@pytest.mark.soak
async def test_agent_outlives_its_killed_worker(own_engine: Home, project: Path) -> None:
    client = Client(own_engine)
    agent = "cmd:echo started >> $(dirname $ORCH_USAGE_FILE)/starts; sleep 4; echo 3 > level"
    run = await client.start_goal(goal="raise", repo=project, verify=("grep -q 3 level",), agent=(agent,))
    starts = own_engine.run(run) / "attempts/i1-c1-b1/private/starts"
    while not starts.exists():
        await asyncio.sleep(0.05)

    Plug(own_engine, worker=True, server=False).pull(0)
    await asyncio.sleep(1)
    agents = processes_with("sleep 4; echo 3 > level")
    view = await client.result(run)

    assert agents
    assert view.status is RunStatus.SUCCEEDED
    assert starts.read_text().splitlines() == ["started"]


async def _compare(home: Home, project: Path, *plugs: Plug, offset: int, stride: int = STRIDE) -> None:
    client, turn = Client(home), cycle(plugs)
    calm = await client.result(await _start(client, project, "calm"))
    (project / "level").write_text("0\n")

    run = await _start(client, project, "killed")
    ids = [run, *(f"{run}/i{i}-c{c}-b{(i - 1) * 3 + c}" for i in (1, 2) for c in (1, 2, 3))]
    await disturb(home, ids, lambda: next(turn), offset=offset, stride=stride)
    view = await client.result(run)

    assert sum(len(plug.kills) for plug in plugs) >= 3
    assert _outcome(view) == _outcome(calm)
    assert (project / "level").read_text() == "3\n"
    for attempt in (home.run(run) / "attempts").glob("i[12]-c[123]-*"):
        assert starts_in(attempt) == ["started"], attempt.name
    await nothing_left(home, run)


async def _start(client: Client, project: Path, name: str) -> str:
    ladder = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
    return await client.start_goal(
        id=f"goal-{name}", goal="raise the level", repo=project, verify=ladder, agent=(AGENT,), candidates=3
    )


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


@pytest.fixture(name="project")
def kill_project(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A clean repository at level 0, so that both runs start from the same tree."""
    return make_repo(tmp_path / "project", {"level": "0\n"})
