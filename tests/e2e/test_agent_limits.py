"""S02, S06, S09: silence and time are two limits; what came before them is kept, and nothing is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from orch import Client
from orch.activities.jobs import find_jobs
from orch.workflows.model.view import CandidateStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TOP = ("grep -q 3 level",)
SILENT = "begin; say half 10; echo 1 > level; sleep 300 & sleep 300"
"""Its child holds the pipes open, too."""


async def test_silence_stops_who_streams_and_time_stops_who_talks(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    talk = "begin; for i in 1 2 3 4 5 6; do say more 1; sleep 0.4; done; echo 3 > level; stop"
    endless = "begin; echo 2 > level; while :; do say more 1; sleep 0.4; done"
    agents = (talks(SILENT, idle=3), talks(talk, idle=3), talks(endless, idle=3))

    view = await run_goal(*agents, verify=TOP, attempt_timeout=8, promote="none")

    silent, talking, late = view.iterations[0].candidates
    assert (silent.outcome, silent.outcome_detail) == ("timed_out", "silent for 3 s")
    assert (silent.usage.tokens, silent.message, silent.paths) == (10, "half", ("level",))
    assert (talking.outcome, talking.status, talking.usage.tokens) == ("done", CandidateStatus.PASSED, 6)
    assert (late.outcome, late.paths) == ("timed_out", ("level",))
    assert 8 <= late.usage.wall_s < 30
    assert silent.usage.wall_s < late.usage.wall_s
    printed = client.home.run(view.id) / "attempts/i1-c1-b1/agent/1-stdout"
    assert '"text": "half"' in printed.read_text()
    assert find_jobs(client.home.run(view.id)) == []


async def test_agent_without_a_stream_may_be_silent_to_its_end(client: Client, run_goal: RunGoal, talks: Talks) -> None:
    """It has no limit of silence at all; one that streams has one of its own accord."""
    view = await run_goal("cmd:sleep 2; echo at last; echo 3 > level", talks("begin; stop"), verify=TOP, promote="none")

    quiet, streaming = view.iterations[0].candidates
    assert (quiet.outcome, quiet.status) == ("done", CandidateStatus.PASSED)
    assert streaming.outcome == "no_change"
    attempts = client.home.run(view.id) / "attempts"
    jobs = [json.loads((attempts / f"i1-c{n}-b{n}/agent/job.json").read_text()) for n in (1, 2)]
    assert [job["steps"][0]["idle_s"] for job in jobs] == [None, 1800.0]


@pytest.mark.soak
async def test_reviewer_is_stopped_by_the_same_limits_and_its_silence_is_a_veto(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    endless, costly = "begin; while :; do say more 1; sleep 0.4; done", "begin; say more 30; sleep 300"
    reviewers = (talks(SILENT, idle=1.5), talks(endless), talks(endless, max_turns=2), talks(costly))
    options = {"verify": TOP, "attempt_timeout": 6.0, "budget_tokens": 20, "max_iterations": 1, "promote": "none"}

    views = await asyncio.gather(*(run_goal("cmd:echo 3 > level", sign_off=r, **options) for r in reviewers))

    reviews = [view.iterations[0].review.removeprefix("vetoed: reviewer: ") for view in views]
    assert reviews[0] == "timed out: silent for 1.5 s"
    assert reviews[1].startswith("timed out: ")
    assert reviews[2].endswith(" turns of 2")
    assert reviews[3] == "budget limit: 30 tokens of the run's 20"
    assert all(view.usage.tokens for view in views)
    assert [find_jobs(client.home.run(view.id)) for view in views] == [[]] * 4
