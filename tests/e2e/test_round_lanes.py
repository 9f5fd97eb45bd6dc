"""Lanes of the running system whose worker dies: budgets, deadlines and claims hold across every restart.

These are the offline cases that the review of the rounds' design asked for, each with a SIGKILL of the worker in it.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import psutil
import pytest

from orch import Client
from orch.activities.home import Home
from orch.activities.supervisor import END
from orch.worker import engine
from orch.worker.records import read_worker
from orch.workflows.lane_state import LaneState
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.budget import BindingState
from orch.workflows.model.event import Event
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.round.event import (
    BindingCancelled,
    BindingClaimed,
    BindingReserved,
    BindingSettled,
    LaneEnded,
    LaneStarted,
    TicketQueued,
)
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.ticket import Cause
from orch.workflows.rules import lane_budget

from .playing import Played

pytestmark = [pytest.mark.engine]

Kind = TypeVar("Kind")

BEGUN = 'echo began >> "$(dirname "$ORCH_USAGE_FILE")/starts"'
"""A line for each start, beside the usage report that each launch has of its own."""

LASTS = "45s"
"""Of a lane that is to be late: it counts from the round's start, and the incumbent is measured before any lane."""

GO = "until [ -e ../desk/go ]; do sleep 0.05; done"
"""Wait for the test."""


class Run:
    """A round whose worker is killed and started anew by the test."""

    def __init__(self, home: Home, repo: Path, plan: Path) -> None:
        self.home, self.repo, self.plan, self.client = home, repo, plan, Client(home)
        self.run = ""

    async def start(self) -> None:
        self.run = await self.client.start_round(self.plan, repo=self.repo)

    async def until(self, kind: type[Kind], lane: str, count: int = 1) -> Kind:
        """The so many-th event of a kind that speaks of a lane, as soon as it is recorded."""
        async for event in self.client.events(self.run):
            if isinstance(event, kind) and lane in {getattr(event, "lane", ""), _submitted(event)}:
                count -= 1
                if not count:
                    return event
        raise AssertionError(f"the round ended without {kind.__name__} of {lane}")

    @asynccontextmanager
    async def without_worker(self) -> AsyncIterator[None]:
        """SIGKILL the worker, and start another one afterwards."""
        record = read_worker(self.home)
        assert record is not None
        with suppress(psutil.NoSuchProcess):
            victim = psutil.Process(record.pid)
            victim.kill()
            victim.wait(30)
        yield
        await engine.ensure_up(self.home)

    async def ended(self) -> Played:
        """Follow it to its end."""
        return Played(self.run, self.repo, self.plan, tuple([event async for event in self.client.events(self.run)]))

    def folder(self, lane: int = 1) -> Path:
        return self.home.attempt(AttemptKey(run=self.run, iteration=1, candidate=lane, binding=lane))

    def starts(self, lane: int = 1) -> list[str]:
        """The folders of the launches in which an agent began, once for each time it did."""
        found = sorted(self.folder(lane).glob("private*/starts"))
        return [path.parent.name for path in found for _ in path.read_text().splitlines()]


@pytest.fixture
def begun(modules_engine_home: Home, rounds: ModuleType, tmp_path: Path) -> Callable[..., Run]:
    """Prepare a round of some lanes, with a campaign of its own."""

    def make(lanes: Sequence[Any], **overrides: Any) -> Run:
        repo = rounds.synthetic(tmp_path / "repo")
        campaign = {"campaign": f"c-{uuid.uuid4().hex[:8]}", **overrides.pop("campaign", {})}
        plan = rounds.write_plan(tmp_path / "plans", repo, lanes, campaign=campaign, aa_every=20, **overrides)
        return Run(modules_engine_home, repo, plan)

    return make


def _submitted(event: Event) -> str:
    return event.submission.lane if isinstance(event, TicketQueued) else ""


def lane_state(done: Played, lane: str) -> LaneState:
    """The lane as its events fold."""
    plan = next(event for event in done.events if event.type == "round_started").plan
    found = next(one for one in plan.lanes if one.id == lane)
    state = LaneState(found, plan.digest)
    for event in done.events:
        if getattr(event, "lane", "") == lane:
            state.apply(event)
    return state


async def passed(deadline: float) -> None:
    """Return once the deadline is over."""
    while time.time() <= deadline:
        await asyncio.sleep(0.1)


async def test_changed_bytes_after_a_timeout_are_another_attempt_and_another_ticket(
    begun: Callable[..., Run], rounds: ModuleType, scripted: ModuleType
) -> None:
    """Timeout after submit, then changed bytes: the first claim stays charged, the retry has a binding of its own."""
    first = f"{scripted.turn('parse', 0.6)}; {scripted.SUBMIT}; touch .orch/first; sleep 600"
    again = f"{scripted.turn('parse', 0.5)}; {scripted.SUBMIT}"
    usage = 'echo "{\\"tokens_in\\": 100}" > "$ORCH_USAGE_FILE"'
    agent = f"cmd:{BEGUN}; {usage}; if [ -e .orch/first ]; then {again}; else {first}; fi"
    budget = {"attempts": 2, "wall": "6s", "tokens": 1000}
    run = begun([rounds.Lane("parse", agent, more={"budget": budget})])
    await run.start()
    await run.until(TicketQueued, "parse")
    async with run.without_worker():
        pass
    done = await run.ended()

    state = lane_state(done, "parse")
    assert [event.outcome.kind for event in done.all(BindingSettled)] == [OutcomeKind.TIMED_OUT, OutcomeKind.DONE]
    assert [event.binding.tokens for event in done.all(BindingReserved)] == [1000, 900]
    assert len({binding.digest for binding in state.ledger.bindings}) == 2
    assert lane_budget.charged(state.ledger)[:2] == (2, 200)
    assert done.ends() == {"parse": LaneEnd.DONE}
    assert len(set(done.queued("parse"))) == 2
    assert run.starts() == ["private", "private-2"]


async def test_a_restart_after_the_budget_is_spent_authorises_nothing(
    begun: Callable[..., Run], rounds: ModuleType, scripted: ModuleType
) -> None:
    """Restart after budget exhaustion: an attempt that submitted nothing is charged, too, and there is no other."""
    spent = f'cmd:{BEGUN}; echo "{{\\"tokens_in\\": 50}}" > "$ORCH_USAGE_FILE"; exit 1'
    waits = f"cmd:{GO}; {scripted.turn('layout', 0.5)}; {scripted.SUBMIT}"
    budget = {"attempts": 9, "tokens": 40}
    run = begun([rounds.Lane("parse", spent, more={"budget": budget}), rounds.Lane("layout", waits)])
    await run.start()
    await run.until(LaneEnded, "parse")
    await run.until(BindingClaimed, "layout")
    async with run.without_worker():
        (run.folder(2) / "desk" / "go").touch()
    done = await run.ended()

    state = lane_state(done, "parse")
    assert done.ends() == {"parse": LaneEnd.TOKENS, "layout": LaneEnd.DONE}
    assert lane_budget.charged(state.ledger)[:2] == (1, 50)
    assert run.starts() == ["private"]
    assert done.decided.lanes == ("layout",)


async def test_what_was_reserved_before_the_deadline_is_not_launched_after_it(
    begun: Callable[..., Run], rounds: ModuleType, scripted: ModuleType
) -> None:
    """Reserved before and launched after expiry: set-up takes longer than the lane has, and its worker dies in it."""
    mine = '[ "$ORCH_ITERATION$ORCH_CANDIDATE" != 11 ] || until [ -e ~/go ]; do sleep 0.05; done'
    lanes = [rounds.Lane("parse", f"cmd:{BEGUN}", more={"deadline": LASTS})]
    run = begun(lanes, campaign={"commands": {**rounds.COMMANDS, "setup": mine}})
    await run.start()
    await run.until(BindingReserved, "parse")
    while not (run.folder() / "setup").exists():
        await asyncio.sleep(0.05)
    deadline = (await run.until(LaneStarted, "parse")).deadline
    async with run.without_worker():
        await passed(deadline)
        (run.folder() / "home" / "go").touch()
    done = await run.ended()

    state = lane_state(done, "parse")
    assert done.ends()["parse"] is LaneEnd.DEADLINE
    assert [binding.state for binding in state.ledger.bindings] == [BindingState.CANCELLED]
    assert [event.ordinal for event in done.all(BindingCancelled)] == [1]
    assert done.all(BindingClaimed) == []
    assert run.starts() == []
    assert not (run.folder() / "agent").exists()


async def test_what_is_submitted_after_the_deadline_is_not_taken_in(
    begun: Callable[..., Run], rounds: ModuleType, scripted: ModuleType
) -> None:
    """Started before and submitted after expiry: no worker takes it in, and none is needed to end the agent."""
    first = f"{scripted.turn('parse', 0.6)}; {scripted.SUBMIT}"
    second = f"{scripted.turn('parse', 0.5)}; {scripted.SUBMIT}; touch ../desk/handed; sleep 600"
    run = begun([
        rounds.Lane("parse", f"cmd:{BEGUN}; {first}; {GO}; {second}", more={"deadline": LASTS}),
        rounds.Lane("layout", scripted.gain("layout")),
    ])  # fmt: skip
    await run.start()
    deadline = (await run.until(LaneStarted, "parse")).deadline
    await run.until(TicketQueued, "parse")
    async with run.without_worker():
        desk = run.folder() / "desk"
        (desk / "go").touch()
        while not (desk / "handed").exists():
            await asyncio.sleep(0.05)
        await passed(deadline)
        while not (run.folder() / "agent" / END).exists():  # by its supervisor
            await asyncio.sleep(0.05)
    done = await run.ended()

    assert done.ends()["parse"] is LaneEnd.DEADLINE
    assert done.exits("parse") == ["timed out (deadline)"]
    assert len(done.queued("parse")) == 1
    assert done.causes("parse") == [Cause.LANE_DEADLINE]
    assert run.starts() == ["private"]
    assert set(done.decided.lanes) == {"parse", "layout"}


@pytest.mark.soak
async def test_every_claim_is_one_launch_wherever_the_worker_is_killed(
    begun: Callable[..., Run], rounds: ModuleType, scripted: ModuleType
) -> None:
    work = f"{scripted.turn('parse', 0.5)}; {scripted.SUBMIT}"
    usage = 'echo "{\\"tokens_in\\": 10}" > "$ORCH_USAGE_FILE"'
    agent = f"cmd:{BEGUN}; {usage}; sleep 1; if [ -e .orch/first ]; then {work}; else touch .orch/first; exit 1; fi"
    run = begun([rounds.Lane("parse", agent, more={"budget": {"attempts": 3, "tokens": 1000}})])
    await run.start()
    for kind in (LaneStarted, BindingClaimed, BindingSettled):
        await run.until(kind, "parse")
        async with run.without_worker():
            pass
    await run.until(BindingClaimed, "parse", 2)
    async with run.without_worker():
        pass
    done = await run.ended()

    state = lane_state(done, "parse")
    assert [event.ordinal for event in done.all(BindingClaimed)] == [1, 2]
    assert run.starts() == ["private", "private-2"]
    assert lane_budget.charged(state.ledger)[:2] == (2, 20)
    assert done.decided.lanes == ("parse",)
    assert json.loads((run.home.run(run.run) / "ledger.jsonl").read_text().splitlines()[0])["type"] == "round_started"
