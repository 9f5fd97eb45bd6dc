"""A stage: places where an adapter that an installed package brings is launched under the real supervisor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orch.activities import artifacts
from orch.activities.agents import registry
from orch.activities.agents.preparing import AgentRun
from orch.activities.home import Home
from orch.activities.places import Place
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget

RUN = "goal-x"


@dataclass(frozen=True)
class Stage:
    """A run's folder, in which agents are launched without a sandbox."""

    home: Home

    def key(self, candidate: int = 1, iteration: int = 1) -> AttemptKey:
        return AttemptKey(run=RUN, iteration=iteration, candidate=candidate, binding=10 * iteration + candidate)

    def place(self, candidate: int = 1, iteration: int = 1) -> Place:
        key = self.key(candidate, iteration)
        place = Place(self.home, key, self.home.attempt(key))
        (place.folder / "tree").mkdir(parents=True, exist_ok=True)
        return place

    def launch(
        self, script: str, spec: str = "talker", candidate: int = 1, iteration: int = 1, **more: Any
    ) -> AgentRun:
        """What to run: an agent whose prompt is a script."""
        whole = {"deadline": time.time() + 30, "sandbox": False, "env": {}, "writable": (), **more}
        return AgentRun(self.place(candidate, iteration), spec, f"{script}\n", **whole)


@pytest.fixture
def stage(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A run on this host, where a package has brought the agents `talker` and `loner`."""
    installed = tmp_path / "site" / "talker-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: talker\nVersion: 1.0\n")
    points = "talker = talker:TalkerAgent\nloner = talker:LonerAgent\n"
    (installed / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}")
    monkeypatch.syspath_prepend(installed.parent)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    _forget()
    request = PrepareRun(
        run=RUN,
        repo=str(tmp_path / "project"),
        contract=Contract(goal="x", rungs=(Rung(name="a", run="true"),)),
        agents=("talker",),
        sandbox=SandboxMode.OFF,
        promote=PromoteTarget(),
        path="",
    )
    artifacts.keep_request(home, request)
    yield Stage(home)
    _forget()


def _forget() -> None:
    registry._foreign.cache_clear()
    registry.adapter_of.cache_clear()
