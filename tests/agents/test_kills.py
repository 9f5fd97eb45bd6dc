"""Kills while a real agent works: of the agent, its supervisor and the worker, thinking or in a tool."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable
from itertools import product

import pytest

from orch.activities.home import Home
from orch.worker.records import read_worker
from orch.workflows.model.view import RunView

from .model.scenarios import slow_tool, thinking
from .starting import Runs, Started

pytestmark = pytest.mark.agents

AGENTS = ("codex:gpt-5.5", "pi:fake-model")
STATES = ("thinking", "slow_tool")
SHORT = (("thinking", AGENTS[1]), ("slow_tool", AGENTS[0]))
"""Of states and agents, what there is time for outside of the soak set."""


async def works(runs: Runs, started: Started, state: str) -> None:
    """Wait until the agent's request is at the server, and until its tool runs."""
    await asyncio.to_thread(runs.server.wait_for, started.asked_as, requests=1)
    limit = time.monotonic() + 60
    while state == "slow_tool" and not _running(runs, started.id, "time.sleep"):
        assert time.monotonic() < limit
        await asyncio.sleep(0.1)


def _running(runs: Runs, run: str, words: str) -> list[int]:
    return [pid for pid, line in runs.supervised(run).items() if words in line]


def _pids(runs: Runs, run: str, victim: str) -> Iterable[int]:
    if victim == "supervisor":
        return _running(runs, run, "activities/supervisor")[:1]
    name = "bwrap" if _running(runs, run, "bwrap") else "codex"
    every = [pid for pid in runs.supervised(run) if pid not in _running(runs, run, "activities/supervisor")]
    return _running(runs, run, name)[:1] or every[:1]


@pytest.mark.parametrize(
    ("state", "agent"),
    [pytest.param(*case, marks=[] if case in SHORT else [pytest.mark.soak]) for case in product(STATES, AGENTS)],
)
async def test_a_killed_agent_or_supervisor_is_an_outcome_and_nothing_is_left(
    runs: Runs, state: str, agent: str
) -> None:
    cases = [(victim, number) for victim in ("agent", "supervisor") for number in (signal.SIGTERM, signal.SIGKILL)]
    started = [await runs.start(state, agent) for _ in cases]
    await asyncio.gather(*(works(runs, one, state) for one in started))

    for one, (victim, number) in zip(started, cases, strict=True):
        for pid in _pids(runs, one.id, victim):
            os.kill(pid, number)
    begun = time.monotonic()
    views = await asyncio.gather(*(runs.result(one) for one in started))

    assert time.monotonic() - begun < 30
    assert [outcome(view) for view in views] == ["crashed", "crashed", "killed", "crashed"]
    assert [runs.supervised(one.id) for one in started] == [{}] * len(cases)


def outcome(view: RunView) -> str:
    """What became of the one candidate's agent."""
    return view.iterations[0].candidates[0].outcome


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.soak), signal.SIGKILL])
async def test_an_agent_outlives_the_worker_and_is_not_paid_for_twice(runs: Runs, number: int) -> None:
    runs.server.add("think_a_little", thinking(6.0))
    runs.server.add("little_tool", slow_tool(6.0))
    states = {"think_a_little": "thinking", "little_tool": "slow_tool"}
    started = [await runs.start(scenario, agent) for scenario in states for agent in AGENTS]
    await asyncio.gather(*(works(runs, one, states[one.asked_as.rpartition("-")[0]]) for one in started))

    os.kill(worker_of(runs.home), number)
    views = await asyncio.gather(*(runs.result(one) for one in started))

    assert [(view.status, outcome(view)) for view in views] == [("succeeded", "done")] * 4
    assert [view.iterations[0].candidates[0].launches for view in views] == [1] * 4
    asked = [sum(r.outcome != "title" for r in runs.server.requests(one.asked_as)) for one in started]
    assert asked == [2, 2, 3, 3]


def worker_of(home: Home) -> int:
    """The pid of the engine's worker."""
    record = read_worker(home)
    assert record is not None
    return record.pid
