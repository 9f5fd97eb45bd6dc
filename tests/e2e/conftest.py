"""A real engine for the whole session, a project with a ladder of three rungs, and scripted agents that climb it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.state import open_state
from orch.workflows.model.view import RunView

LADDER = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
"""Three rungs: the number in the file `level` must reach 1, 2, 3."""


@pytest.fixture(scope="session")
def engine_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A state directory with a running local engine."""
    home = Home(tmp_path_factory.mktemp("engine") / "state")
    open_state(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
            patch.delenv(name, raising=False)
        asyncio.run(engine.ensure_up(home))
    yield home
    asyncio.run(engine.down(home))


@pytest.fixture
def client(engine_home: Home) -> Client:
    """A client of the session's engine."""
    return Client(engine_home)


@pytest.fixture
def project(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A repository at level 0, with a dirty file, an untracked file and an ignored file of the user's."""
    repo = make_repo(
        tmp_path / "project",
        {"level": "0\n", "notes.txt": "committed\n", "tests/check.sh": "exit 1\n", ".gitignore": "*.log\n"},
    )
    (repo / "notes.txt").write_text("edited by the user\n")
    (repo / "draft.txt").write_text("untracked\n")
    (repo / "debug.log").write_text("ignored\n")
    return repo


@pytest.fixture
def run_goal(client: Client, project: Path, kit: ModuleType) -> Callable[..., Any]:
    """Start a goal on the project and wait for its end."""

    async def run(*agents: str, **options: Any) -> RunView:
        given = {"goal": "raise the level", "repo": project, "verify": LADDER, "candidates": len(agents), **options}
        return await client.result(await client.start_goal(agent=agents, **given))

    return run


def climb(level: int) -> str:
    """An agent that writes a level."""
    return f"cmd:echo {level} > level"


@pytest.fixture(name="climb")
def climb_fixture() -> Callable[[int], str]:
    """An agent that writes a level."""
    return climb
