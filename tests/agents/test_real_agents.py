"""The scripts as real agents play them, started without `orch`: they ask, use their own tools, wait and end."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .direct import KEY, Direct
from .model.scenarios import HELLO
from .model.server import ModelServer

pytestmark = pytest.mark.agents

Starter = Callable[[str, str], Direct]


def outcomes(server: ModelServer, agent: Direct) -> list[str]:
    return [request.outcome for request in server.requests(agent.run)]


def edited(agent: Direct) -> bool:
    path = agent.tree / HELLO.path
    return path.exists() and path.read_text() == HELLO.content


def test_agent_makes_the_edit_with_its_own_tool(start_agent: Starter, model_server: ModelServer, program: str) -> None:
    agent = start_agent(program, "edit")
    assert agent.wait() == 0, agent.output
    assert edited(agent)
    assert outcomes(model_server, agent) == ["answered", "answered"]
    first, last = model_server.requests(agent.run)
    assert (first.key, first.asked.prompts) == (KEY, ("# Task from a test\n\nPlease do it.",))
    assert (last.asked.rounds, len(last.asked.results)) == (1, 1)


def test_agent_outlasts_two_rate_limits_and_a_cut(
    start_agent: Starter, model_server: ModelServer, program: str
) -> None:
    limited, cut = start_agent(program, "rate_limited_twice"), start_agent(program, "stream_cut_once")
    assert (limited.wait(), cut.wait()) == (0, 0), limited.output + cut.output
    assert edited(limited)
    assert edited(cut)
    assert outcomes(model_server, limited) == ["rate_limited", "rate_limited", "answered", "answered"]
    assert outcomes(model_server, cut) == ["cut", "answered", "answered"]


def test_agent_ends_without_an_edit_when_the_model_refuses_or_is_silent(
    start_agent: Starter, model_server: ModelServer, program: str
) -> None:
    for agent in (start_agent(program, "refusal"), start_agent(program, "empty")):
        agent.wait()
        assert set(outcomes(model_server, agent)) == {"answered"}
        assert not edited(agent)


def test_agent_runs_a_command_with_its_own_tool_and_nothing_of_it_outlives_a_kill(
    start_agent: Starter, model_server: ModelServer, program: str
) -> None:
    agent = start_agent(program, "slow_tool")
    until = time.monotonic() + 50
    while not any("time.sleep(60)" in line for line in agent.commands()):
        assert time.monotonic() < until, agent.output
        time.sleep(0.1)
    agent.kill()
    assert outcomes(model_server, agent) == ["answered"]
    assert agent.commands() == []


def test_four_agents_at_once_are_kept_apart(start_agent: Starter, model_server: ModelServer) -> None:
    plan = [("codex", "two_edits"), ("pi", "edit"), ("codex", "stream_cut_once"), ("codex", "two_edits")]
    agents = [start_agent(program, scenario) for program, scenario in plan]
    assert [agent.wait() for agent in agents] == [0] * 4
    assert [len(model_server.requests(agent.run)) for agent in agents] == [2, 2, 3, 2]
    assert [(agent.tree / "two.txt").exists() for agent in agents] == [True, False, False, True]
