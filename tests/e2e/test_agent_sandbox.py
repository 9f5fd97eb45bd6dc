"""S16: a supervisor or sandbox that is killed takes its agent with it, and what it had done is known."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from orch import Client
from orch.activities import supervisor
from orch.activities.jobs import find_jobs
from orch.workflows.model.reason import RunReason
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TOP = ("grep -q 3 level",)
WORK = 'begin; say one 10; [ "$ORCH_ROLE" ] || echo 1 > level; touch $HOME/ready; sleep 300'


async def test_agent_ends_with_its_supervisor_or_sandbox_and_what_it_did_is_kept(
    client: Client, project: Path, talks: Talks
) -> None:
    """Events are on disk as they come, so that usage, session and words are known."""
    spec = talks(WORK)
    views = await asyncio.gather(
        *(_killed(client, project, "i1-c1-b1", victim, agent=(spec,)) for victim in ("supervisor", "sandbox")),
        _killed(client, project, "i1-c0-b0/review", "supervisor", agent=("cmd:echo 3 > level",), sign_off=spec),
    )

    for view in views[:2]:
        (candidate,) = view.iterations[0].candidates
        assert candidate.outcome == "crashed"
        assert (candidate.usage.tokens, candidate.message, candidate.paths) == (10, "one", ("level",))
        assert candidate.session
    assert views[2].iterations[0].review.startswith("vetoed: reviewer: crashed: ")
    assert views[2].usage.tokens == 10


async def _killed(client: Client, repo: Path, name: str, victim: str, **options: Any) -> RunView:
    """The end of a run whose agent's supervisor, or what holds the agent, was killed while it worked."""
    given: dict[str, Any] = {"goal": "raise", "repo": repo, "verify": TOP, "promote": "none", "max_iterations": 1}
    run = await client.start_goal(**given, **options)
    folder = client.home.run(run) / "attempts" / name
    async with asyncio.timeout(60):
        while not (folder / "home/ready").exists():
            await asyncio.sleep(0.05)
    pid = json.loads((folder / "agent" / supervisor.IDENTITY).read_text())["pid"]
    os.kill(pid if victim == "supervisor" else psutil.Process(pid).children()[0].pid, signal.SIGKILL)
    view = await client.result(run)
    assert find_jobs(client.home.run(run)) == []
    return view


async def test_sandbox_that_fails_or_blocks_at_its_start_costs_its_own_candidate_and_no_other(
    client: Client, run_goal: RunGoal, talks: Talks, sandbox_with_faults: None
) -> None:
    work = "begin; echo 3 > level; stop"

    view = await run_goal(talks(work), talks(work, idle=1.2), talks(work), verify=TOP, sandbox=True, promote="none")

    broken, blocked, sound = view.iterations[0].candidates
    assert (broken.outcome, broken.changed) == ("not_started", None)
    assert (blocked.outcome, blocked.outcome_detail, blocked.changed) == ("timed_out", "silent for 1.2 s", False)
    assert (sound.outcome, sound.status) == ("done", CandidateStatus.PASSED)
    said = client.home.run(view.id) / "attempts/i1-c1-b1/agent/1-stderr"
    assert said.read_text() == "bwrap: no permissions\n"


@pytest.fixture
def sandbox_with_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox that fails for the agent of the first candidate and blocks for that of the second one."""
    program = tmp_path / "faults/bwrap"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        "case ${ORCH_PROMPT_FILE:+$ORCH_CANDIDATE} in\n"
        '1) echo "bwrap: no permissions" >&2; exit 1 ;;\n'
        "2) exec sleep 300 ;;\n"
        "esac\n"
        f'PATH={os.environ["PATH"]} exec bwrap "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


async def test_program_that_is_gone_at_its_launch_ends_the_run_before_the_others_are_launched(
    client: Client, project: Path, talks: Talks, tmp_path: Path
) -> None:
    spec = talks("begin; stop")
    run = await client.start_goal(
        goal="raise", repo=project, verify=TOP, agent=(spec,), candidates=8, seal=True, promote="none"
    )
    async with asyncio.timeout(60):
        while (await client.view(run)).status is not RunStatus.WAITING:
            await asyncio.sleep(0.05)
    shutil.rmtree(tmp_path / "bin")

    await client.approve(run)
    view = await client.result(run)

    assert view.reason is not None
    assert (view.reason.code, view.reason.data["outcome"]) == (RunReason.AGENT_UNUSABLE, "not_started")
    (iteration,) = view.iterations
    assert {c.outcome for c in iteration.candidates} == {"not_started"}
    assert all("talker-1" in c.failure for c in iteration.candidates)
