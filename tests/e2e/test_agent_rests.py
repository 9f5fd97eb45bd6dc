"""S11: a usage limit is waited for once, by all, where everybody can see it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orch import Client
from orch.activities.agents import resting
from orch.cli.event_lines import event_line
from orch.cli.render import run_lines
from orch.workflows.model.event import AttemptResumed, AttemptWaiting
from orch.workflows.model.view import CandidateStatus, RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TOP = ("grep -q 3 level",)
LIMIT = "429 usage limit reached"


def limited(gate: Path, words: str) -> str:
    """A script whose provider refuses until the gate is there."""
    work = "echo 3 > level; say 'now it works' 5; stop"
    return f"echo $id >> $HOME/launches; begin; if [ -e {gate} ]; then {work}; else say hm 10; fail '{words}'; fi"


def later(client: Client, spec: str) -> str:
    """A set-up by which all but the first candidate wait until that one has found the limit."""
    return f"[ $ORCH_CANDIDATE -lt 2 ] || until [ -e {resting._resting(client.home, spec)} ]; do sleep 0.1; done"


async def rests(client: Client, run: str, count: int | None = None) -> list[AttemptWaiting]:
    """The first so many rests of a run, as soon as they are told of; all of them once it has ended."""
    found = []
    async for event in client.events(run):
        found += [event] if isinstance(event, AttemptWaiting) else []
        if len(found) == count:
            break
    return found


async def test_candidates_share_one_rest_that_is_shown_and_go_on_after_it(
    client: Client, project: Path, talks: Talks, tmp_path: Path
) -> None:
    """One launch finds the limit for all four; three are not launched before the time it was told."""
    gate = tmp_path / "gate"
    spec = talks(limited(gate, f"{LIMIT}, try again in 5s"))
    run = await client.start_goal(
        goal="raise",
        repo=project,
        verify=TOP,
        agent=(spec,),
        candidates=4,
        setup=later(client, spec),
        sandbox=False,
        promote="none",
    )

    told = await rests(client, run, 4)
    seen = await client.view(run)
    gate.touch()
    view = await client.result(run)

    assert {one.until for one in told} == {told[0].until}
    assert all("was rate limited, goes on at" in event_line(one) for one in told)
    resting_now = seen.iterations[0].candidates
    assert [(c.status, c.outcome, c.resting_until) for c in resting_now] == [
        (CandidateStatus.RESTING, "rate_limited", told[0].until)
    ] * 4
    assert sum("rate limited, goes on at" in line for line in run_lines(seen)) == 4
    assert view.status is RunStatus.SUCCEEDED
    went_on = [event.attempt.candidate async for event in client.events(run) if isinstance(event, AttemptResumed)]
    assert sorted(went_on) == [1, 2, 3, 4]
    assert [c.launches for c in view.iterations[0].candidates] == [2, 1, 1, 1]
    assert [c.usage.tokens for c in view.iterations[0].candidates] == [15, 5, 5, 5]
    taken_up = (client.home.run(run) / "attempts/i1-c1-b1/home/launches").read_text().split()
    assert len(taken_up) == 2
    assert len(set(taken_up)) == 1


async def test_slot_is_free_while_an_attempt_rests_and_taken_again_afterwards(
    client: Client, project: Path, talks: Talks, tmp_path: Path
) -> None:
    """A rest is no work: it lasts longer than the attempt may, and others use its slot meanwhile."""
    gate = tmp_path / "gate"
    spec = talks(limited(gate, f"{LIMIT}, try again in 12s"))
    run = await client.start_goal(
        goal="raise", repo=project, verify=TOP, agent=(spec,), promote="none", attempt_timeout=8.0
    )
    await rests(client, run, 1)
    gate.touch()
    while held(client, run):
        await asyncio.sleep(0.1)
    resting_then = (await client.view(run)).iterations[0].candidates[0].status
    view = await client.result(run)

    assert resting_then is CandidateStatus.RESTING
    assert (view.status, view.iterations[0].candidates[0].launches) == (RunStatus.SUCCEEDED, 2)
    assert held(client, run) == []


def held(client: Client, run: str) -> list[Path]:
    """The slots that a run holds."""
    return [path for path in client.home.slots.glob("[0-9]*") if path.read_text().startswith(run)]


async def test_rest_ends_at_once_when_the_run_is_cancelled(
    client: Client, project: Path, talks: Talks, tmp_path: Path
) -> None:
    """What was used before it is still owed, and the slot is free again."""
    spec = talks(limited(tmp_path / "gate", f"{LIMIT}, try again in 50m"))
    run = await client.start_goal(goal="raise", repo=project, verify=TOP, agent=(spec,), promote="none")
    await rests(client, run, 1)

    begun = time.monotonic()
    await client.cancel(run)
    view = await client.result(run)

    assert time.monotonic() - begun < 10
    assert (view.status, view.usage.tokens) == (RunStatus.CANCELLED, 10)
    assert view.iterations[0].candidates[0].failure.startswith("cancelled")
    assert held(client, run) == []


async def test_limit_that_lasts_beyond_the_deadline_ends_every_candidate_at_once(
    client: Client, run_goal: RunGoal, talks: Talks, tmp_path: Path
) -> None:
    """Whoever comes later is not even launched, and each says why."""
    spec = talks(limited(tmp_path / "gate", f"{LIMIT}, resets in 3 hours"))

    view = await run_goal(
        spec, candidates=3, setup=later(client, spec), sandbox=False, deadline=600.0, max_iterations=1
    )

    candidates = view.iterations[0].candidates
    assert [(c.outcome, c.launches) for c in candidates] == [("rate_limited", n) for n in (1, 0, 0)]
    assert sum(f"{LIMIT}, resets in 3 hours" in line for line in run_lines(view)) == 3
    assert await rests(client, view.id) == []


@pytest.mark.soak
async def test_reviewer_rests_too_and_answers_after_it(
    client: Client, run_goal: RunGoal, talks: Talks, tmp_path: Path
) -> None:
    """Its launches are counted together, and the run is signed off."""
    limit = f"touch $HOME/told; fail '{LIMIT}, try again in 2s'"
    reviewer = talks(f"begin; say hm 10; if [ -e $HOME/told ]; then approve; else {limit}; fi")

    view = await run_goal("cmd:echo 3 > level", sign_off=reviewer, promote="none")

    assert (view.status, view.iterations[0].review) == (RunStatus.SUCCEEDED, "approved: fine")
    assert view.usage.tokens == 20
    jobs = (client.home.run(view.id) / "attempts/i1-c0-b0/review").glob("agent*")
    assert sorted(path.name for path in jobs) == ["agent", "agent-2"]
