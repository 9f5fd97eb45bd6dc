"""S19, S20: no two candidates share a session or a home, and a session goes on in its own candidate's working copy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from orch import Client
from orch.workflows.model.view import CandidateView, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

CLIMB = "echo $(( $(cat level) + ORCH_CANDIDATE )) > level"
"""The second candidate gets further than the first."""

TELL = 'echo "$(pwd -P) $HOME $id" >> $HOME/where'


async def test_sessions_and_homes_are_each_candidates_own_in_whatever_language_it_speaks(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    """The first candidate goes on where the winner was, the second one branches off; each in its own working copy."""
    specs = [talks(f"{TELL}; begin; say hm 10; {CLIMB}; stop", agent) for agent in ("pi", "claude", "codex")]
    ladder = ("test $(cat level) -ge 2", "test $(cat level) -ge 4")

    views = await asyncio.gather(*(run_goal(spec, spec, verify=ladder, promote="none") for spec in specs))

    for view in views:
        (first, winner), (heir, branch) = (iteration.candidates for iteration in view.iterations)
        assert [c.origin for c in (first, winner, heir, branch)] == [
            "fresh", "fresh", "continues i1-c2-b2", "forked from i1-c2-b2"
        ]  # fmt: skip
        assert heir.session == winner.session
        assert len({first.session, winner.session, branch.session}) == 3
        for name, candidate in (("i1-c1-b1", first), ("i1-c2-b2", winner), ("i2-c1-b3", heir), ("i2-c2-b4", branch)):
            _stood_in_its_own(client, view, name, candidate)


def _stood_in_its_own(client: Client, view: RunView, name: str, candidate: CandidateView) -> None:
    attempt = client.home.run(view.id) / "attempts" / name
    (line,) = (attempt / "home/where").read_text().splitlines()
    assert line == f"{attempt.resolve() / 'tree'} {attempt / 'home'} {candidate.session}"


async def test_session_whose_record_is_gone_begins_anew_and_says_so(run_goal: RunGoal, talks: Talks) -> None:
    spec = talks(f"begin; say hm 10; {CLIMB}; stop; rm $record")

    view = await run_goal(spec, max_iterations=2, promote="none")

    first, second = (iteration.candidates[0] for iteration in view.iterations)
    assert second.origin == "fresh: the session of i1-c1-b1 cannot be taken up"
    assert second.outcome == "done"
    assert first.session != second.session
