"""A project with a ladder of three rungs, and scripted agents that climb it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.workflows.model.view import RunView

from .talking import talker

LADDER = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
"""Three rungs: the number in the file `level` must reach 1, 2, 3."""


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


@pytest.fixture
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Make an agent, logged in, of a shell script that talks as a real one does; see `talking.py`."""
    numbers = itertools.count(1)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "any")

    def make(script: str, agent: str = "pi", **settings: object) -> str:
        return talker(tmp_path / "bin" / f"talker-{next(numbers)}", script, agent, **settings)

    return make
