"""An attempt's steps, asked for again: a worker died, or the attempt rested; nothing is done twice, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities import store
from orch.activities.admission import Admission
from orch.activities.attempts import Attempts
from orch.activities.exchange.claiming import expire
from orch.activities.measuring import tampering
from orch.activities.measuring.measurements import Measurements
from orch.activities.runs import Runs
from orch.activities.slots import held
from orch.activities.workspaces.registry import provider_of
from orch.workflows.model.attempt import AttemptKey, Measure, OpenWorkspace, Workspace
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget


async def awaited(step: Callable[..., Any], request: Any) -> Any:
    """What an activity returns."""
    return await ActivityEnvironment().run(step, request)


class Steps:
    """The activities of one attempt of a prepared run, called as a worker calls them."""

    def __init__(self, here: Any, contract: Contract, *, sandbox: bool = False) -> None:
        self.here, self.contract, self.sandbox = here, contract, sandbox
        self.folder: Path = here.folder()
        start = PrepareRun(
            run=here.run,
            repo=str(here.repo),
            contract=contract,
            agents=("cmd:true",),
            sandbox=SandboxMode.REQUIRED if sandbox else SandboxMode.OFF,
            promote=PromoteTarget.parse("none"),
        )
        self.prepared = asyncio.run(awaited(Runs(here.home).prepare_run, start))
        assert self.prepared.baseline

    async def open(self) -> Workspace:
        """By a worker of its own."""
        request = OpenWorkspace(
            attempt=self.here.key(),
            store=self.here.store.key,
            commit=self.prepared.baseline.commit,
            contract=self.contract,
            sandbox=self.sandbox,
        )
        return await ActivityEnvironment().run(
            Attempts(self.here.home, Admission(self.here.home, 4)).open_workspace, request
        )

    def measure(self, key: AttemptKey) -> Any:
        """Measure the baseline's tree as a candidate's."""
        baseline = self.prepared.baseline
        request = Measure(
            attempt=key,
            store=self.here.store.key,
            commit=baseline.commit,
            tree=baseline.tree,
            contract=self.contract,
            gate=True,
            sandbox=self.sandbox,
        )
        return asyncio.run(awaited(Measurements(self.here.home).measure, request))


def contract(run: str = "true", **facts: Any) -> Contract:
    return Contract(goal="g", rungs=(Rung(name="a", run=run),), **facts)


@pytest.fixture
def here(bench: Callable[[Path], Any], make_repo: Callable[..., Path], tmp_path: Path) -> Any:
    return bench(make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n"}))


def test_a_workspace_that_rested_is_as_it_was_whatever_the_settings_are_now(here: Any, tmp_path: Path) -> None:
    steps = Steps(here, contract(setup=f"echo ran >> {tmp_path}/runs"))
    first = asyncio.run(steps.open())
    (provider_of(steps.folder).written(steps.folder) / "mine").write_text("mine\n")
    with (here.store.git_dir / "config").open("a") as config:
        config.write("[core]\n\tautocrlf = input\n")
    again = asyncio.run(steps.open())
    assert (again.path, again.setup) == (first.path, first.setup)
    assert (provider_of(steps.folder).written(steps.folder) / "mine").exists()
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_a_set_up_that_goes_on_without_its_worker_is_not_begun_again(here: Any, tmp_path: Path) -> None:
    script = f"echo ran >> {tmp_path}/runs; touch ~/.toolrc; [ $(wc -l < {tmp_path}/runs) = 1 ] || sleep 1"
    steps = Steps(here, contract(setup=script))

    async def twice() -> Workspace:
        first = asyncio.create_task(steps.open())
        while not (tmp_path / "runs").exists() or (tmp_path / "runs").read_text() != "ran\nran\n":
            await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return await steps.open()

    found = asyncio.run(twice()).setup
    assert found is not None
    assert found.ok, found
    assert (tmp_path / "runs").read_text() == "ran\nran\n"


def test_an_attempt_that_waits_for_its_base_keeps_its_slot(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(here, contract(setup="sleep 1"))
    monkeypatch.setattr("orch.activities.exchange.claiming.UNUSED_S", 0.0)

    async def while_it_waits() -> dict[int, str]:
        opening = asyncio.create_task(steps.open())
        while not held(here.home.slots):
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        expire(here.home)
        slots = held(here.home.slots)
        await opening
        return slots

    assert list(asyncio.run(while_it_waits()).values()) == ["run/i1-c1-b1"]


@pytest.mark.parametrize("provider", ["overlay", "clone"])
def test_no_rung_writes_what_it_is_graded_by(here: Any, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", provider)
    steps = Steps(here, contract("echo x > b.txt; echo x > a.txt", protected=("/a.txt",)), sandbox=True)
    (here.home.run(here.run) / tampering.HABITS).write_bytes(b"")
    verdict = steps.measure(here.key())
    assert "a.txt: Read-only file system" in verdict.rungs[0].stderr.head
    assert verdict.tampered == ()


@pytest.mark.parametrize("provider", ["overlay", "clone"])
def test_a_rung_that_leaves_what_keeps_git_busy_for_ever_has_tampered(
    here: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", provider)
    monkeypatch.setattr(store, "FOREIGN_S", 1)
    deep, rules = "a/" * 45, f"/a{'/**/a' * 22}/**/[b] text"
    kit.write(here.repo, {f"{deep}a": "deep\n"})
    steps = Steps(here, contract(f"echo DEEP > {deep}a; echo '{rules}' > .gitattributes", protected=("/a.txt",)))
    assert steps.measure(here.key()).tampered == ("more than git can tell",)
