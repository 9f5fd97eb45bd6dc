"""Set-up runs once for all attempts from one base, and each finds what it made at the path that it knows."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import artifacts
from orch.activities.changes import read_changes
from orch.activities.places import Place
from orch.activities.shared_setup import MADE_BY_SETUP, Shared, SharedSetups
from orch.activities.snapshots import take_candidate
from orch.activities.workspaces.registry import open_workspace, provider_of
from orch.workflows.model.attempt import OpenWorkspace
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget

TOOL = "printf '#!/bin/sh\\ncat %s/a.txt\\n' $PWD > tool; chmod +x tool; echo locked >> b.txt; "


@pytest.fixture
def here(bench: Callable[[Path], Any], make_repo: Callable[..., Path], tmp_path: Path) -> Any:
    return bench(make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n"}))


def shared(here: Any, setup: str, count: int) -> list[Shared | None]:
    """What `count` attempts get that ask at the same time."""
    contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),), setup=setup)
    start = PrepareRun(
        run="run",
        repo=str(here.repo),
        agents=("cmd:true",),
        contract=contract,
        sandbox=SandboxMode.OFF,
        promote=PromoteTarget(),
    )
    artifacts.keep_request(here.home, start)
    setups, commit = SharedSetups(), here.baseline().commit

    async def one(number: int) -> Shared | None:
        key = here.key(number)
        request = OpenWorkspace(attempt=key, store=here.store.key, commit=commit, contract=contract, sandbox=False)
        return await setups.get(here.store, Place(here.home, key, here.folder(number)), request, ())

    async def all_of_them() -> list[Shared | None]:
        return list(await asyncio.gather(*map(one, range(1, count + 1))))

    return asyncio.run(all_of_them())


def test_it_runs_once_and_is_there_for_all(here: Any, tmp_path: Path) -> None:
    results = shared(here, f"{TOOL} echo ran >> {tmp_path}/runs", 4)
    assert (tmp_path / "runs").read_text() == "ran\n"
    for number, result in enumerate(results, 1):
        assert result is not None
        assert result.layers is not None
        assert result.exit.ok
        tree = open_workspace(here.store, here.folder(number), here.baseline().commit, result.layers)
        script = f"echo {number} > a.txt; ./tool; tail -1 b.txt; git status --porcelain"
        argv = provider_of(here.folder(number)).entering(here.folder(number), ("sh", "-c", script))
        said = subprocess.run(argv, cwd=tree, capture_output=True, check=True, text=True).stdout
        assert said == f"{number}\nlocked\n M a.txt\n M b.txt\n?? tool\n"
        assert _candidate(here, number).paths == ("a.txt",)


def test_what_set_up_made_counts_once_an_agent_changes_it(here: Any) -> None:
    (result,) = shared(here, TOOL, 1)
    assert result is not None
    assert result.layers is not None
    tree = open_workspace(here.store, here.folder(), here.baseline().commit, result.layers)
    argv = provider_of(here.folder()).entering(here.folder(), ("sh", "-c", "touch tool b.txt; echo 1 >> tool"))
    subprocess.run(argv, cwd=tree, check=True)
    assert _candidate(here, 1).paths == ("tool",)


def test_a_failure_is_told_to_all_who_waited_and_tried_anew_by_others(here: Any, tmp_path: Path) -> None:
    setup = f"echo ran >> {tmp_path}/runs; sleep 0.3; echo no such package >&2; exit 3"
    for result in shared(here, setup, 3):
        assert result is not None
        assert result.layers is None
        assert (result.exit.number, result.output.head) == (3, "no such package\n")
    shared(here, setup, 1)
    assert (tmp_path / "runs").read_text() == "ran\nran\n"


@pytest.mark.parametrize("line", ["echo $ORCH_CANDIDATE > who", "serve --port ${PORT}"])
def test_one_that_speaks_of_its_own_workspace_is_not_shared(here: Any, line: str) -> None:
    assert shared(here, line, 1) == [None]


def test_one_that_leaves_files_in_its_home_is_not_shared(here: Any) -> None:
    assert shared(here, "mkdir -p ~/.cache/pip && touch ~/.cache/pip/x ~/.toolrc", 2) == [None, None]
    (result,) = shared(here, "mkdir -p ~/.cache/pip && touch ~/.cache/pip/x", 1)
    assert result is not None


def _candidate(here: Any, number: int) -> Any:
    contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),))
    folder = here.folder(number)
    return take_candidate(
        here.store,
        folder / "tree",
        attempt=here.key(number),
        commit=here.baseline().commit,
        index=folder / "index",
        contract=contract,
        carried=(),
        made=read_changes(folder / MADE_BY_SETUP),
    )
