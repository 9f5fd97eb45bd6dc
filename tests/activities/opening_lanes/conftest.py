"""A prepared round of one lane or more, whose steps are called as a worker calls them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities.admission import Admission
from orch.activities.attempts import Attempts
from orch.activities.home import Home
from orch.activities.lanes.lane import Lanes
from orch.activities.runs import Runs
from orch.activities.store import Store
from orch.activities.workspaces.registry import provider_of
from orch.workflows.lane_steps import lane_contract
from orch.workflows.model.attempt import AgentReport, AttemptKey, CloseAttempt, RunAgent
from orch.workflows.model.goal import PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.round.lane import LaneOpened, OpenLane
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)

RUN = "round-c-r"
T = TypeVar("T")


def done(step: Callable[[Any], Awaitable[T]], request: object) -> T:
    """What an activity returns that the engine hands over now, to a worker of its own."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))

    async def run() -> T:
        return await environment.run(step, request)

    return asyncio.run(run())


def lane_plan(name: str = "fast", **facts: Any) -> LanePlan:
    entry = Entry(id=f"e-{name}", plane="algorithm", hypothesis="a table is faster than a search", headroom=0.3)
    return LanePlan(**{"id": name, "entry": entry, "globs": ("src/**",), "agent": "cmd:true", **facts})


def round_plan(incumbent: str = "0" * 40, **facts: Any) -> RoundPlan:
    commands = {"benchmark": Command(run="true"), **facts.pop("commands", {})}
    whole = {
        "id": "r",
        "campaign": "c",
        "campaign_digest": "a" * 64,
        "incumbent": incumbent,
        "metric": Metric(name="time", direction=Direction.LOWER, unit="ms"),
        "gates": Gates(),
        "devices": (DeviceSet(name="cpu"),),
        "lanes": (lane_plan(),),
        "commands": Commands(**commands),
        **facts,
    }
    return RoundPlan(**whole)


@dataclass
class Scene:
    """A round on a repository, its store filled, and the activities of its lanes."""

    home: Home
    repo: Path
    sandbox: bool
    began: float = field(default_factory=time.time)

    def prepare(self, **facts: Any) -> None:
        draft = round_plan(**facts)
        start = PrepareRun(
            run=RUN,
            repo=str(self.repo),
            contract=lane_contract(draft, draft.lanes[0]),
            agents=("cmd:true",),
            sandbox=SandboxMode.REQUIRED if self.sandbox else SandboxMode.OFF,
            promote=PromoteTarget.parse("none"),
            path=os.environ["PATH"],
        )
        prepared = done(Runs(self.home).prepare_run, start)
        assert prepared.baseline, prepared.refused
        self.store, self.plan = prepared.store, round_plan(prepared.baseline.commit, **facts)

    def key(self, number: int = 1) -> AttemptKey:
        return AttemptKey(run=RUN, iteration=1, candidate=number, binding=number)

    def folder(self, number: int = 1) -> Path:
        return self.home.attempt(self.key(number))

    def written(self, number: int = 1) -> Path:
        return provider_of(self.folder(number)).written(self.folder(number))

    def refs(self, pattern: str) -> list[bytes]:
        """The store's refs of a name."""
        return list(Store(self.home, self.store).git.lines("for-each-ref", "--format=%(refname)%00", pattern))

    def request(self, number: int = 1, *, left: float = 600) -> OpenLane:
        lane = self.plan.lanes[number - 1]
        return OpenLane(
            attempt=self.key(number),
            store=self.store,
            plan=self.plan,
            lane=lane,
            contract=lane_contract(self.plan, lane),
            sandbox=self.sandbox,
            deadline=self.began + left,
        )

    def open(self, number: int = 1, *, left: float = 600, slots: int = 4) -> LaneOpened:
        """By a worker of its own."""
        lanes = Lanes(self.home, Admission(self.home, slots))
        return done(lanes.open_lane, self.request(number, left=left))

    def agent(
        self, script: str, number: int = 1, *, launch: int = 1, left: float = 600, prompt: str = ""
    ) -> AgentReport:
        lane = self.plan.lanes[number - 1]
        request = RunAgent(
            attempt=self.key(number),
            agent=f"cmd:{script}",
            store=self.store,
            contract=lane_contract(self.plan, lane),
            deadline=self.began + left,
            sandbox=self.sandbox,
            launch=launch,
            prompt=prompt,
        )
        attempts = Attempts(self.home, Admission(self.home, 4))
        return done(attempts.run_agent, request)

    def close(self, number: int = 1) -> None:
        attempts = Attempts(self.home, Admission(self.home, 4))
        request = CloseAttempt(attempt=self.key(number), store=self.store)
        done(attempts.close_attempt, request)


FILES: Mapping[str, str] = {"src/pkg/__init__.py": "SPEED = 1\n", "bench.py": "print(1)\n", ".gitignore": "*.pyc\n"}


@pytest.fixture
def project(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A project with a package, a benchmark and excludes of the user's own."""
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text("notes/\n")
    return repo


@pytest.fixture(params=["overlay", "clone"])
def scene(
    request: pytest.FixtureRequest, home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Scene]:
    """Prepare a round, with every kind of workspace that a host may be set to."""
    monkeypatch.setenv("ORCH_WORKSPACES", request.param)

    def make(*, sandbox: bool = True, **facts: Any) -> Scene:
        one = Scene(home, project, sandbox)
        one.prepare(**facts)
        return one

    return make


@pytest.fixture
def lane_of() -> Callable[..., LanePlan]:
    """Make a lane of a plan."""
    return lane_plan
