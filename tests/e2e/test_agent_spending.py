"""S15, S17: what agents spent is counted once and in time; what nobody told is unknown, and the run says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orch import Client
from orch.cli.render import run_lines
from orch.worker.settings import load_settings
from orch.workflows.details import details
from orch.workflows.model.event import CandidateMeasured, RunEnded
from orch.workflows.model.reason import RunReason
from orch.workflows.model.view import CandidateView, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]
Talks = Callable[..., str]

TOP = ("grep -q 3 level",)
STEP = "echo $(( $(cat level) + 1 )) > level"


async def test_each_attempt_of_one_session_pays_for_what_it_used_itself(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    """Claude and Codex tell the session's total, which holds the earlier attempts' shares once more."""
    work = f"begin; echo $before >> $HOME/before; say one 60 60; say two 40 40; {STEP}; stop"
    prices = {"claude": 100.0, "codex": None, "pi": 100.0}

    views = await asyncio.gather(*(run_goal(talks(work, agent), promote="none") for agent in prices))

    for agent, view in zip(prices, views, strict=True):
        candidates = [iteration.candidates[0] for iteration in view.iterations]
        assert [(c.usage.tokens, c.usage.usd) for c in candidates] == [(100, prices[agent])] * 3
        assert (view.usage.tokens, view.usage.usd) == (300, prices[agent] and 300.0)
        assert [c.origin.partition(" ")[0] for c in candidates] == ["fresh", "continues", "continues"]
        assert len({c.session for c in candidates}) == 1
        attempts = client.home.run(view.id) / "attempts"
        told = [(attempts / f"i{n}-c1-b{n}/home/before").read_text() for n in (1, 2, 3)]
        assert told == (["0\n"] * 3 if agent == "pi" else ["0\n", "100\n", "200\n"])


async def test_candidates_pass_the_runs_budget_by_no_more_than_one_of_them_costs(
    client: Client, run_goal: RunGoal, talks: Talks
) -> None:
    """Who works is stopped while it works, and who waits for a slot is not launched any more (here half of them)."""
    slots, cost = load_settings().slots, 3.0
    spec = talks("touch $HOME/launched; echo 1 > level; begin; say a 9 1; say b 9 1; say c 9 1; sleep 60; stop")

    view = await run_goal(spec, candidates=2 * slots, budget_usd=slots * cost - 2, verify=TOP)

    assert view.reason is not None
    assert view.reason.code is RunReason.BUDGET_USD
    (iteration,) = view.iterations
    assert {c.outcome for c in iteration.candidates} == {"budget_limit"}
    assert all(f"of the run's ${slots * cost - 2:.4f}" in c.outcome_detail for c in iteration.candidates)
    (ended,) = [event async for event in client.events(view.id) if isinstance(event, RunEnded)]
    assert view.usage.usd == ended.usage.usd == slots * cost
    launched = {path.parents[1].name for path in client.home.run(view.id).glob("attempts/*/home/launched")}
    assert {f"i1-c{c.index}-b{c.index}" for c in iteration.candidates if c.usage.usd == cost} == launched
    assert len(launched) == slots


async def test_command_is_not_started_when_the_budget_is_passed_already(run_goal: RunGoal) -> None:
    """An agent without a stream cannot be stopped in time, so it is the start that is refused."""
    costly = "cmd:echo '{\"usd\": 20}' > $ORCH_USAGE_FILE"

    view = await run_goal(costly, candidates=5, budget_usd=10.0, verify=TOP)

    outcomes = [c.outcome for c in view.iterations[0].candidates]
    assert outcomes.count("budget_limit") + outcomes.count("no_change") == 5
    assert view.usage.usd == 20.0 * outcomes.count("no_change") < 100.0


async def test_unknown_cost_is_shown_as_unknown_and_the_run_warns_that_its_budget_cannot_hold(
    run_goal: RunGoal, talks: Talks, client: Client
) -> None:
    """S17: turns and time are limited all the same."""
    endless = "begin; while :; do say hm; sleep 0.1; done"
    limited: dict[str, Any] = {"budget_usd": 1.0, "budget_tokens": 10, "attempt_timeout": 2.5, "max_iterations": 1}

    view = await run_goal(talks(endless, max_turns=4), talks(endless), talks("begin; say hm 7; stop"), **limited)

    turns, time, priceless = view.iterations[0].candidates
    assert turns.outcome == "turn_limit"
    assert turns.outcome_detail.endswith(" turns of 4")
    assert time.outcome == "timed_out"
    assert [(c.usage.tokens, c.usage.usd) for c in (turns, time, priceless)] == [(None, None), (None, None), (7, None)]
    assert view.usage.usd is None
    assert [w.partition(":")[0] for w in view.warnings] == ["pi reports no tokens", "pi reports no money"]
    lines = run_lines(view)
    assert [line for line in lines if line.startswith("warning: ")] == [f"warning: {w}" for w in view.warnings]
    assert [_cost(lines, c) for c in (turns, time, priceless)] == ["unknown", "unknown", "7 tok"]
    assert "$" not in details(view)
    measured = [e.candidate async for e in client.events(view.id) if isinstance(e, CandidateMeasured)]
    assert all(candidate.usage.usd is None for candidate in measured)


def _cost(lines: list[str], candidate: CandidateView) -> str:
    """The cost column of a candidate's line."""
    heading = next(line for line in lines if line.startswith("rank"))
    (line,) = [line for line in lines if line[6:].startswith(f"{candidate.index} ")]
    return line[heading.index("cost") : heading.index("time")].strip()
