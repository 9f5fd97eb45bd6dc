"""In a whole run that protects nothing by name, honest work alone is promoted, and cheats are told as what they are."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.workflows.model.view import CandidateStatus, RunStatus

from .cheats import load
from .scene import FILES, HONEST, QUICK

pytestmark = [pytest.mark.engine]

CHEATS = ("check that exits 0", "makefile before the makefile", "rung writes a makefile for the next one")


async def test_honest_candidate_wins_over_cheats_and_only_its_paths_are_promoted(
    client: Client, kit: ModuleType, tmp_path: Path
) -> None:
    repo, table = kit.make_repo(tmp_path / "project", FILES), load("checks")
    agents = tuple(f"cmd:{table[name].script}" for name in CHEATS)

    run = await client.start_goal(
        goal="raise", repo=repo, verify=tuple(QUICK.values()), agent=(*agents, f"cmd:{HONEST}"), max_iterations=1
    )
    view = await client.result(run)

    (iteration,) = view.iterations
    assert (view.status, iteration.winner) == (RunStatus.SUCCEEDED, 4)
    assert [candidate.status for candidate in iteration.candidates[:2]] == [CandidateStatus.RED] * 2
    assert [candidate.restored for candidate in iteration.candidates] == [("verify.sh",), ("GNUmakefile",), (), ()]
    assert iteration.candidates[2].status in {CandidateStatus.UNEVALUABLE, CandidateStatus.RED}
    assert kit.git(repo, "status", "--porcelain") == "M slug.py"
