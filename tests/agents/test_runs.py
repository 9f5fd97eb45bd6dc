"""Goal runs of real agents: what they do, what it costs, what becomes of them when their provider fails."""

from __future__ import annotations

import asyncio
import shutil
import time

import pytest

from orch.workflows.model.event import AttemptWaiting
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.reason import RunReason
from orch.workflows.model.view import CandidateView, RunView

from .starting import Runs

pytestmark = pytest.mark.agents

AGENTS = ("codex:gpt-5.5", "pi:fake-model")

CODEX, PI = AGENTS
CODEX_IN_CI = (CODEX, pytest.param(PI, marks=pytest.mark.soak))
PI_IN_CI = (pytest.param(CODEX, marks=pytest.mark.soak), PI)
"""What is the same for both is shown with one of them in CI's time, and with both in the soak set."""


def only(view: RunView) -> CandidateView:
    """The one candidate of a run's one iteration."""
    (iteration,) = view.iterations
    (candidate,) = iteration.candidates
    return candidate


async def first_name(runs: Runs, view: RunView) -> OutcomeKind:
    """What the candidate's first launch was said to have become: what it rested for, or else its end."""
    rests = [event.outcome.kind async for event in runs.client.events(view.id) if isinstance(event, AttemptWaiting)]
    return rests[0] if rests else OutcomeKind(only(view).outcome)


async def test_agents_mixed_in_one_run_and_the_edit_is_promoted(runs: Runs) -> None:
    view = await runs.run("edit", *AGENTS, "codex:gpt-5.5,max-turns=9")

    assert view.reason is not None
    assert view.reason.code is RunReason.DONE
    assert [c.outcome for c in view.iterations[0].candidates] == ["done"] * 3
    assert [c.rungs_passed for c in view.iterations[0].candidates] == [1] * 3
    assert all(c.usage.tokens for c in view.iterations[0].candidates)
    assert open(f"{view.repo}/hello.txt").read() == "hello from the model\n"  # noqa: PTH123, SIM115, ASYNC230


@pytest.mark.parametrize(("agent", "usd"), [(AGENTS[0], 0.00355), (AGENTS[1], 0.00762)])
async def test_the_winners_session_goes_on_and_each_attempt_counts_its_own(runs: Runs, agent: str, usd: float) -> None:
    view = await runs.run("edit_again", agent, verify=('test "$(cat seen.txt)" = 1',), max_iterations=2)

    first, second = (iteration.candidates[0] for iteration in view.iterations)
    assert view.status == "succeeded"
    assert (first.origin, second.origin) == ("fresh", "continues i1-c1-b1")
    assert first.session == second.session
    assert [(a.usage.tokens, a.usage.tokens_cached) for a in (first, second)] == [(2500, 400)] * 2
    assert [a.usage.usd for a in (first, second)] == pytest.approx([usd, usd])
    assert view.usage.tokens == 5000
    assert view.usage.usd == pytest.approx(2 * usd)


FAULTS = {
    "rate_limited": OutcomeKind.RATE_LIMITED,
    "context_full": OutcomeKind.CONTEXT_FULL,
    "stream_cut": OutcomeKind.STREAM_BROKEN,
    "refusal": OutcomeKind.REFUSED,
    "empty": OutcomeKind.EMPTY_ANSWER,
    "quota": OutcomeKind.OUT_OF_QUOTA,
    "overloaded": OutcomeKind.OVERLOADED,
}

LONG = {"stream_cut": 75.0, "overloaded": 75.0}
"""Seconds for what is tried again at once; the others' wait reaches beyond the deadline, so they end without it."""

MUTE = {("refusal", "codex:gpt-5.5"): OutcomeKind.EMPTY_ANSWER}
"""What an agent does not tell apart: Codex ends with 0 and without a word when its model refuses."""


@pytest.mark.parametrize("agents", [1, pytest.param(2, marks=pytest.mark.soak)])
async def test_each_fault_of_a_provider_has_its_name(runs: Runs, agents: int) -> None:
    """One of the agents meets a fault, in turns, or both do."""
    cases = [(fault, agent) for n, fault in enumerate(FAULTS) for agent in (AGENTS * 2)[n % 2 :][:agents]]
    told_to_all = [case for case in cases if case[0] == "rate_limited"]  # these last: all with that agent would rest
    ended = dict[tuple[str, str], RunView]()
    for wave in ([case for case in cases if case not in told_to_all], told_to_all):
        started = [await runs.start(fault, agent, deadline=LONG.get(fault, 30.0)) for fault, agent in wave]
        ended |= zip(wave, await asyncio.gather(*(runs.result(one) for one in started)), strict=True)
    views = [ended[case] for case in cases]
    shutil.rmtree(runs.home.root / "resting")  # else the next tests' agents would rest, too

    names = await asyncio.gather(*(first_name(runs, view) for view in views))
    found = dict(zip(cases, names, strict=True))
    assert found == {(fault, agent): MUTE.get((fault, agent), FAULTS[fault]) for fault, agent in cases}
    assert not any(only(view).changed for view in views)
    limited = [view for (fault, _), view in zip(cases, views, strict=True) if fault == "rate_limited"]
    assert all(only(view).usage.wall_s < 25 for view in limited)  # their wait would reach beyond the deadline of 30 s


@pytest.mark.parametrize("agent", CODEX_IN_CI)
async def test_a_passing_rate_limit_is_waited_for(runs: Runs, agent: str) -> None:
    view = await runs.run("rate_limited_twice", agent)

    assert (view.status, only(view).outcome) == ("succeeded", "done")
    assert only(view).usage.tokens


@pytest.mark.parametrize("agent", CODEX_IN_CI)
async def test_a_bad_key_ends_the_run_before_the_others_are_paid_for(runs: Runs, agent: str) -> None:
    view = await runs.run("unauthorised", agent, candidates=12, max_iterations=3)

    assert view.reason is not None
    assert (view.reason.code, view.reason.data["outcome"]) == (RunReason.AGENT_UNUSABLE, "not_authorised")
    assert len(view.iterations) == 1
    launched = sum(c.launches for c in view.iterations[0].candidates)
    assert 1 <= launched < 12


@pytest.mark.parametrize("agent", CODEX_IN_CI)
async def test_turns_are_limited_for_an_agent_that_cannot_limit_them(runs: Runs, agent: str) -> None:
    view = await runs.run("loop", f"{agent},max-turns=3")

    assert only(view).outcome == "turn_limit"
    assert only(view).outcome_detail.endswith("turns of 3")
    assert only(view).changed


async def test_the_runs_budget_stops_agents_while_they_run(runs: Runs) -> None:
    view = await runs.run("loop", "pi:fake-model", budget_tokens=20_000)

    assert only(view).outcome == "budget_limit"
    assert "of the run's 20,000" in only(view).outcome_detail


@pytest.mark.parametrize("agent", PI_IN_CI)
async def test_the_deadline_holds_while_the_model_thinks(runs: Runs, agent: str) -> None:
    begun = time.monotonic()
    view = await runs.run("thinking", agent, attempt_timeout=4.0)

    assert only(view).outcome == "timed_out"
    assert time.monotonic() - begun < 60


async def test_four_at_once(runs: Runs) -> None:
    view = await runs.run("edit", *AGENTS, candidates=4)

    assert [c.outcome for c in view.iterations[0].candidates] == ["done"] * 4
    assert len({c.session for c in view.iterations[0].candidates}) == 4


@pytest.mark.parametrize("agent", CODEX_IN_CI)
async def test_an_agent_reviews_the_head(runs: Runs, agent: str) -> None:
    approved = await runs.run("approve", "cmd:echo hi > hello.txt", sign_off=agent)
    vetoed = await runs.run("veto", "cmd:echo hi > hello.txt", sign_off=agent)

    assert approved.iterations[0].review == "approved: as scripted"
    assert vetoed.iterations[0].review == "vetoed: as scripted"
    assert (approved.status, vetoed.status) == ("succeeded", "failed")
    assert approved.usage.tokens
