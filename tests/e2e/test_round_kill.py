"""Pulling the plug on a round: SIGKILL of worker, engine and both, again and again, changes nothing of its ledger.

Steps are the events that the engine has recorded of the round. It is killed at every STRIDE-th of them, from an offset
on; the soak set has rounds with each offset for each victim, so that all steps are covered by all, the ordinary one is
a single round whose victims take turns. The benchmark has no noise, so that what is measured does not depend on which
ticket comes first.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities import supervisor
from orch.activities.artifacts import LEDGER, read_events
from orch.activities.home import Home
from orch.activities.jobs import results_of
from orch.activities.trials.leases import Lease, leased
from orch.activities.trials.processors import TRIAL
from orch.activities.trials.schedule import BENCHMARK, Run
from orch.activities.trials.sides import RUNS, Side
from orch.workflows.model.event import Event, RunEnded
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.event import BindingClaimed, BindingSettled, TicketMeasured

from .plug import STARTS, VICTIMS, Plug, disturb, engine_of_its_own, nothing_left, starts_in

pytestmark = [pytest.mark.engine]

STRIDE = 24
OFFSETS = tuple(range(1, STRIDE + 1))
PAIRS = 4

TIMES = frozenset(
    {
        "at",
        "started_at",
        "deadline",
        "from",
        "to",
        "wait_s",
        "waited_s",
        "held_s",
        "free_at",
        "wall_s",
        "queue",
        "device_hours",
    }
)
NUMBERS = frozenset({"event", "ordinal"})
"""Of events and of measurements: they follow the order in which tickets come in."""

ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{8})\b")


@dataclass(frozen=True)
class Calm:
    """What an uninterrupted round came to.

    Attributes:
        document: its ledger document, as `_document` gives it.
        measurements: how many there were.
    """

    document: list[str]
    measurements: int


@pytest.fixture(scope="module")
def calm(rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """The round as nobody disturbs it."""
    folder = tmp_path_factory.mktemp("calm")

    async def play(home: Home) -> str:
        run = await _start(home, rounds, scripted, folder)
        async for _ in Client(home).events(run):
            pass
        return run

    with engine_of_its_own(folder) as home:
        run = asyncio.run(play(home))
        return Calm(_document(home, run), len(_measurements(home, run)))


@pytest.fixture
def own_engine(tmp_path: Path) -> Iterator[Home]:
    """An engine that may be killed."""
    with engine_of_its_own(tmp_path) as home:
        yield home


@pytest.fixture
def disturbed(own_engine: Home, calm: Calm, rounds: ModuleType, scripted: ModuleType, tmp_path: Path) -> Any:
    """Play the round, pull plugs in turn from a step on, and compare what it comes to with the calm one."""

    async def play(*plugs: Plug, offset: int, stride: int = STRIDE) -> None:
        run, turn = await _start(own_engine, rounds, scripted, tmp_path), cycle(plugs)
        await disturb(own_engine, [run], lambda: next(turn), offset=offset, stride=stride)
        await _same(own_engine, run, calm)

    return play


async def test_killed_round_has_the_ledger_of_an_uninterrupted_one(own_engine: Home, disturbed: Any) -> None:
    plugs = [Plug(own_engine, *victims) for victims in VICTIMS.values()]

    await disturbed(*plugs, offset=50, stride=90)

    assert all(plug.kills for plug in plugs)


@pytest.mark.soak
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("victims", VICTIMS)
async def test_round_killed_anywhere_has_the_ledger_of_an_uninterrupted_one(
    own_engine: Home, disturbed: Any, victims: str, offset: int, record_property: Callable[[str, object], None]
) -> None:
    plug = Plug(own_engine, *VICTIMS[victims])

    await disturbed(plug, offset=offset)

    record_property("kills", plug.kills)
    assert plug.kills


async def _same(home: Home, run: str, calm: Calm) -> None:
    """The ledger of the calm round, nothing measured or launched twice for it, and nothing left."""
    await nothing_left(home, run)
    events = read_events(home.run(run) / LEDGER)
    assert [e.reason and e.reason.code for e in events if isinstance(e, RunEnded)] == [RunReason.DONE]
    assert _document(home, run) == calm.document
    assert len(_measurements(home, run)) == calm.measurements
    _nothing_measured_twice(home, run, events)
    _nothing_launched_twice(home, run, events)
    _no_copies_left(home, run)
    async with leased(["cpu-0", "cpu-1"], patience_s=0) as lease:
        assert isinstance(lease, Lease)


async def _start(home: Home, rounds: ModuleType, scripted: ModuleType, folder: Path) -> str:
    """Three lanes, one of which waits for its verdict, and two of which are at one bottleneck."""
    lanes = [
        rounds.Lane("parse", _telling(scripted.gain("parse", 0.5, wait=True))),
        rounds.Lane("index", _telling(scripted.gain("index", 0.4))),
        rounds.Lane("cache", _telling(scripted.gain("cache", 0.45))),
    ]
    repo = rounds.synthetic(folder / "repo", sigma=0.0)
    plan = rounds.write_plan(folder / "plans", repo, lanes, gates={"pairs": PAIRS}, aa_every=2)
    return await Client(home).start_round(plan, repo=repo)


def _telling(agent: str) -> str:
    return agent.replace("cmd:", f"cmd:{STARTS}\n", 1)


def _document(home: Home, run: str) -> list[str]:
    """The ledger document without times, every id replaced by the number of its first appearance."""
    document = json.loads((home.run(run) / "round-ledger.json").read_text())
    document["devices"] = [{**device, "busy": None} for device in document["devices"]]
    text = json.dumps(_timeless(document), indent=1)
    seen: dict[str, str] = {}
    return ID.sub(lambda found: seen.setdefault(found[0], f"ID-{len(seen) + 1}"), text).splitlines()


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _timeless(item) for key, item in value.items() if key not in TIMES | NUMBERS}


def _measurements(home: Home, run: str) -> list[Path]:
    return sorted((home.run(run) / "attempts").glob("i2-*"))


def _nothing_measured_twice(home: Home, run: str, events: tuple[Event, ...]) -> None:
    """One verdict for each ticket, after which nothing of it ran; and no benchmark run of any measurement twice."""
    measured = [event for event in events if isinstance(event, TicketMeasured)]
    assert sorted(event.lane for event in measured) == ["cache", "index", "parse"]
    for event in measured:
        (folder,) = (home.run(run) / "attempts").glob(f"i2-*-b{event.measurement.ordinal}")
        told = datetime.fromisoformat(event.at).timestamp()
        ends = [end.stat().st_mtime for end in folder.glob(f"*/{supervisor.END}")]
        assert ends
        assert max(ends) < told
    for folder in _measurements(home, run):
        steps = [Run.of(step.name) for job in folder.glob(f"{TRIAL}*") for step in results_of(job)]
        made = Counter((step.pair, step.letter) for step in steps if step.what == BENCHMARK)
        assert made == {(pair, letter): 1 for pair in range(PAIRS) for letter in "AB"}, folder.name


def _nothing_launched_twice(home: Home, run: str, events: tuple[Event, ...]) -> None:
    """As many starts of a lane's agent as bindings were claimed, each of which is settled."""
    claimed = Counter(event.lane for event in events if isinstance(event, BindingClaimed))
    settled = Counter(event.lane for event in events if isinstance(event, BindingSettled))
    assert claimed == settled == {"parse": 1, "index": 1, "cache": 1}
    for lane in (home.run(run) / "attempts").glob("i1-*"):
        assert starts_in(lane) == ["started"], lane.name


def _no_copies_left(home: Home, run: str) -> None:
    for folder in _measurements(home, run):
        assert not [name for name in (*Side, RUNS) if (folder / name).exists()], folder.name
    assert not list((home.run(run) / "attempts").glob("i1-*/desk"))
