"""A rig: a repository with a synthetic benchmark, of which two commits are measured against one another.

The benchmark reads its value from the tree, so that what is measured is exact. What it does besides is up to the test:
the candidate's `code.sh` is sourced by it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities import artifacts
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.activities.trials import leases
from orch.activities.trials.building import Building
from orch.activities.trials.pairs import Measuring
from orch.activities.trials.sides import Trial
from orch.activities.trials.validating import Validating
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import Baseline, PrepareRun, RunPrepared, SandboxMode
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.round.lane import BuildTrial, Built, MeasurePairs, TrialStep, ValidateOutputs
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    FileHash,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.trial import Measurement, Validated

BENCH = """\
# What is measured: the value in `knob`; `code.sh` is what candidates write.
. ./code.sh
mkdir -p "$ORCH_OUTPUT" && cp answer "$ORCH_OUTPUT/answer"
printf '{"wall": {"value": %s, "unit": "ms"}}' "$(cat knob)" > "$ORCH_RESULT"
"""

VALIDATOR = 'cmp -s "$ORCH_OUTPUT/answer" expected || { echo "a wrong answer" >&2; exit 3; }\n'

FILES = {
    "bench.sh": BENCH,
    "validate.sh": VALIDATOR,
    "expected": "42\n",
    "answer": "42\n",
    "knob": "100.0",
    "code.sh": "",
    "build.sh": "",
    "smoke.sh": "",
}

PROTECTED = ("/bench.sh", "/expected")

RUN = "round-c-r1"


def command(run: str, timeout_s: float = 30.0) -> Command:
    return Command(run=run, timeout_s=timeout_s)


def _worker() -> ActivityEnvironment:
    """What calls one activity, by an engine whose clock is this host's."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return environment


@dataclass
class Rig:
    """A run of a round on one host, of which trials are built and measured.

    Attributes:
        home: the state directory.
        repo: the user's repository; its HEAD is the incumbent.
        kit: the kit of all tests.
        plan: the frozen plan; tests change it.
        sandbox: whether commands run in the sandbox.
        slow: a candidate whose runs wait.
    """

    home: Home
    repo: Path
    kit: Any
    plan: RoundPlan
    sandbox: bool = True
    slow: str = ""
    _ordinal: int = field(default=0)

    @cached_property
    def store(self) -> Store:
        return Store.of(self.home, inspect(self.repo))

    def with_plan(self, **changes: Any) -> Rig:
        """Change the plan, its commands by their names."""
        names = Commands.model_fields.keys() & changes.keys()
        commands = self.plan.commands.model_copy(update={name: changes.pop(name) for name in names})
        gates = self.plan.gates.model_copy(update=changes.pop("gates", {}))
        self.plan = self.plan.model_copy(update={"commands": commands, "gates": gates, **changes})
        return self

    def candidate(self, files: Mapping[str, str | bytes | None]) -> str:
        """A commit of the store: the incumbent with these files."""
        kit, incumbent = self.kit, self.plan.incumbent
        kit.git(self.repo, "checkout", "-q", "--detach", incumbent)
        for name, content in files.items():
            if content is None:
                (self.repo / name).unlink()
            else:
                kit.write(self.repo, {name: content})
        commit: str = kit.commit_all(self.repo)
        kit.git(self.repo, "checkout", "-q", "main")
        self.take(commit)
        return commit

    def take(self, commit: str) -> None:
        """Bring a commit into the store, as intake does."""
        self.store.git.run("fetch", "-q", str(self.repo), commit)
        self.store.pin(f"refs/orch/{RUN}/{commit[:12]}", commit)

    def key(self) -> AttemptKey:
        """A new measurement's."""
        self._ordinal += 1
        return AttemptKey(run=RUN, iteration=2, candidate=self._ordinal, binding=self._ordinal)

    def building(self, candidate: str, base: str = "") -> BuildTrial:
        return BuildTrial(
            attempt=self.key(),
            store=self.store.key,
            plan=self.plan,
            base=base or self.plan.incumbent,
            candidate=candidate,
            sandbox=self.sandbox,
        )

    def measuring(self, built: BuildTrial, **more: Any) -> MeasurePairs:
        device = self.plan.devices[0].name
        return MeasurePairs(**{**dict(built), "device": device, "patience_s": 0.0, **more})

    def trial(self, request: TrialStep) -> Trial:
        return Trial(self.home, request)

    async def abuild(self, request: BuildTrial, environment: ActivityEnvironment | None = None) -> Built:
        """By a worker of its own."""
        found: Built = await (environment or _worker()).run(Building(self.home).build_trial, request)
        return found

    async def ameasure(self, request: MeasurePairs, environment: ActivityEnvironment | None = None) -> Measurement:
        """Run the pairs and validate what they left, as the queue does, each by a worker of its own."""
        found = await self.apairs(request, environment)
        return found if found.busy or found.failed else found.validated(await self.avalidate(request))

    async def apairs(self, request: MeasurePairs, environment: ActivityEnvironment | None = None) -> Measurement:
        """By a worker of its own."""
        found: Measurement = await (environment or _worker()).run(Measuring(self.home).measure_pairs, request)
        return found

    async def avalidate(self, request: MeasurePairs, environment: ActivityEnvironment | None = None) -> Validated:
        """By a worker of its own."""
        outputs = ValidateOutputs(**{name: getattr(request, name) for name in TrialStep.model_fields})
        found: Validated = await (environment or _worker()).run(Validating(self.home).validate_outputs, outputs)
        return found

    def built(self, request: BuildTrial) -> Built:
        return asyncio.run(self.abuild(request))

    def measured(self, request: MeasurePairs) -> Measurement:
        return asyncio.run(self.ameasure(request))

    def build(self, candidate: str) -> Built:
        return asyncio.run(self.abuild(self.building(candidate)))

    def measure(self, candidate: str, **more: Any) -> Measurement:
        """Build and measure a candidate against the incumbent."""
        return asyncio.run(self.ameasure(self.measuring(self.building(candidate), **more)))


def _plan(repo: Path, incumbent: str) -> RoundPlan:
    validator = (repo / "validate.sh").read_bytes()
    return RoundPlan(
        id="r1",
        campaign="c",
        campaign_digest="0" * 64,
        incumbent=incumbent,
        metric=Metric(name="wall", direction=Direction.LOWER, unit="ms"),
        gates=Gates(
            pairs=4,
            repetitions=1,
            validator=(FileHash(path="validate.sh", sha256=hashlib.sha256(validator).hexdigest()),),
        ),
        protected=PROTECTED,
        devices=(DeviceSet(name="one", cpus=(min(os.sched_getaffinity(0)),)),),
        commands=Commands(
            build=command("sh ./build.sh"),
            smoke=command("sh ./smoke.sh"),
            benchmark=command("sh ./bench.sh"),
            validate_=command("sh ./validate.sh"),
        ),
        lanes=(
            LanePlan(
                id="a",
                entry=Entry(id="e", plane="cpu", hypothesis="less is faster", headroom=0.5),
                globs=("code.sh", "knob", "answer", "build.sh", "smoke.sh"),
                agent="cmd:true",
            ),
        ),
    )


def _make_rig(home: Home, repo: Path, kit: Any, sandbox: bool) -> Rig:
    kit.make_repo(repo, FILES)
    incumbent = kit.git(repo, "rev-parse", "HEAD")
    rig = Rig(home, repo, kit, _plan(repo, incumbent), sandbox)
    contract = Contract(goal="a round", rungs=(Rung(name="benchmark", run="sh ./bench.sh"),))
    artifacts.keep_request(
        home,
        PrepareRun(
            run=RUN,
            repo=str(repo),
            contract=contract,
            agents=(),
            sandbox=SandboxMode.REQUIRED,
            promote=PromoteTarget.parse("none"),
        ),
    )
    rig.take(incumbent)
    baseline = Baseline(commit=incumbent, tree=rig.store.tree_of(incumbent), dirty=False)
    prepared = RunPrepared(store=rig.store.key, baseline=baseline, contract=contract, sandbox=sandbox)
    artifacts.write_whole(home.run(RUN) / artifacts.PREPARED, prepared.model_dump_json())
    return rig


class Turnstile:
    """Where candidates wait until the test lets the one that waits go on: `code` is for their `code.sh`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._tokens = folder, 0
        folder.mkdir()
        count = f"$(ls {folder} | wc -l)"
        self.code = f"n={count}; echo waiting; until [ {count} != $n ]; do sleep 0.02; done\n"

    async def arrived(self, trial: Trial, runs: int) -> None:
        """Wait until so many runs, over all jobs of a trial, came here."""
        async with asyncio.timeout(60):
            while self.seen(trial) < runs:
                await asyncio.sleep(0.02)

    def seen(self, trial: Trial) -> int:
        """How many came here."""
        return sum("waiting" in path.read_text() for path in trial.folder.glob("*/*-stdout"))

    def release(self) -> None:
        """Let the one that waits go on."""
        self._tokens += 1
        (self._folder / str(self._tokens)).touch()


@pytest.fixture
def worker() -> Callable[[], ActivityEnvironment]:
    """What calls one activity, and may cancel it."""
    return _worker


@pytest.fixture
def turnstile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turnstile:
    """A folder that commands in the sandbox see, and cannot write to."""
    monkeypatch.setenv("ORCH_EXPOSE", str(tmp_path / "turnstile"))
    return Turnstile(tmp_path / "turnstile")


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of its own: nobody else's leases."""
    folder = tmp_path / "leases"
    monkeypatch.setenv(leases.VARIABLE, str(folder))
    return folder


@pytest.fixture(params=["overlay", "clone"])
def rig(request: pytest.FixtureRequest, home: Home, tmp_path: Path, kit: Any, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """In the sandbox, with each provider of workspaces."""
    monkeypatch.setenv("ORCH_WORKSPACES", request.param)
    return _make_rig(home, tmp_path / "repo", kit, sandbox=True)


@pytest.fixture
def make_rig(home: Home, tmp_path: Path, kit: Any) -> Callable[..., Rig]:
    """In the sandbox or not, with whatever provider of workspaces suits."""
    return lambda sandbox=True, home=home, repo="repo": _make_rig(home, tmp_path / repo, kit, sandbox)
