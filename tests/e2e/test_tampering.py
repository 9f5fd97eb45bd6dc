"""M11: a check that is swapped and swapped back is noticed; one that the ladder itself rewrites is no tampering."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.workflows.model.event import CandidateMeasured
from orch.workflows.model.view import CandidateStatus, RunStatus

pytestmark = [pytest.mark.engine]

SWAP = "if [ -f kept ]; then mv kept tests/check.sh; else mv tests/check.sh kept; echo exit 0 > tests/check.sh; fi"


@pytest.mark.parametrize(
    ("sandbox", "passed", "status", "tampered"),
    [
        (False, 3, CandidateStatus.UNEVALUABLE, ("tests/check.sh",)),
        (True, 0, CandidateStatus.RED, ()),
    ],
    ids=["named", "cannot be done in the sandbox"],
)
async def test_check_that_is_swapped_and_swapped_back(  # noqa: PLR0917
    client: Client,
    kit: ModuleType,
    tmp_path: Path,
    sandbox: bool,
    passed: int,
    status: CandidateStatus,
    tampered: tuple[str, ...],
) -> None:
    repo = kit.make_repo(tmp_path / "project", {"lib.sh": "true\n", "tests/check.sh": "grep -q 3 level\n"})
    ladder = ("sh lib.sh", "sh tests/check.sh", "sh lib.sh")

    run = await client.start_goal(
        goal="x",
        repo=repo,
        verify=ladder,
        protect=("tests/**",),
        max_iterations=1,
        sandbox=sandbox,
        agent=(f"cmd:echo '{SWAP}' > lib.sh",),
    )
    view = await client.result(run)

    (candidate,) = view.iterations[0].candidates
    assert (candidate.rungs_passed, candidate.status) == (passed, status)
    assert view.status is RunStatus.FAILED
    (measured,) = [e async for e in client.events(run) if isinstance(e, CandidateMeasured)]
    assert measured.candidate.verdict is not None
    assert measured.candidate.verdict.tampered == tampered


async def test_ladder_that_rewrites_its_golden_files_unchanged_still_measures(
    client: Client, kit: ModuleType, tmp_path: Path
) -> None:
    repo = kit.make_repo(tmp_path / "project", {"level": "0\n", "tests/golden": "same\n"})
    rewrite = "rm tests/golden && echo same > tests/golden"

    view = await client.result(
        await client.start_goal(
            goal="x",
            repo=repo,
            verify=(rewrite, "grep -q 3 level"),
            protect=("tests/**",),
            agent=("cmd:echo 3 > level",),
        )
    )

    assert view.status is RunStatus.SUCCEEDED
