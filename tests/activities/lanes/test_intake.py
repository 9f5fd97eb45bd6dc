"""Intake watches, submits once, tells the lane, and is kept from none of it by a worker's death or a hostile lane."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities.attempts import close_attempt_folder
from orch.activities.lanes import board, intake, records, taking
from orch.activities.lanes.desk import FACTS, make_desk
from orch.workflows.model.attempt import CloseAttempt
from orch.workflows.model.round.ticket import Cause, TicketState

from .handing import FakeRound

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again sooner."""
    for name, value in {"MIRROR_S": 0.05, "PATIENCE_S": 0.01, "LOOK_S": 0.2}.items():
        monkeypatch.setattr(intake, name, value)


@asynccontextmanager
async def watching(lane: Any, **facts: Any) -> AsyncIterator[None]:
    """While the activity watches; it is cancelled at the end."""
    environment = ActivityEnvironment()
    task = asyncio.create_task(lane.taking(environment, once=False, **facts))
    yield
    assert not task.done(), task.result()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


def shown(lane: Any, ticket: str) -> str | None:
    path = lane.folder / "desk" / "status" / f"{ticket}.json"
    return json.loads(path.read_text())["state"] if path.exists() else None


async def test_what_is_handed_over_while_it_watches_is_submitted_and_told(lane: Any) -> None:
    make_desk(lane.folder)
    async with watching(lane):
        first = lane.put({"src/a.py": b"a = 2\n"})
        await until(lambda: shown(lane, first) == "queued")
        second = lane.put({"README.md": b"mine\n"})
        await until(lambda: shown(lane, second) == "rejected")
        measured = lane.round.states[first].model_copy(update={"state": TicketState.MEASURED, "gain": 0.25})
        lane.round.states[first] = measured
        await until(lambda: shown(lane, first) == "measured")
    assert [each.ticket for each in lane.round.heard] == [first, second]
    assert lane.round.heard[1].refused is Cause.OUT_OF_SCOPE
    assert lane.status(first)["gain"] == 0.25
    assert lane.status(second)["cause"] == "out_of_scope"
    assert lane.waiting == []


def test_the_oldest_comes_first_and_the_result_names_all(lane: Any) -> None:
    tickets = []
    for number in range(5):
        tickets.append(lane.put({"src/a.py": f"a = {number + 5}\n".encode()}))
        os.utime(lane.outbox / tickets[-1], (1000 + number, 1000 + number))
    taken = asyncio.run(lane.taking())
    assert list(taken.tickets) == tickets == [each.ticket for each in lane.round.heard]


def test_the_same_entry_is_submitted_once_however_often_it_is_put(lane: Any) -> None:
    files = {"src/a.py": b"a = 2\n"}
    lane.put(files)
    assert len(lane.take()) == 1
    for _ in range(2):
        lane.put(files)
        assert lane.take() == []
        assert lane.waiting == []


async def test_a_round_that_does_not_answer_is_asked_again(lane: Any) -> None:
    lane.round.deaf = 3
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    await lane.taking()
    assert [each.ticket for each in lane.round.heard] == [ticket]


async def test_what_was_taken_and_not_submitted_is_submitted_by_the_next_worker(lane: Any) -> None:
    lane.round.deaf = 10**9
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    async with watching(lane):
        await until((lane.folder / "taken" / f"{ticket}.json").exists)
    assert lane.round.heard == []
    assert lane.waiting == [ticket]
    lane.round.deaf = 0

    await lane.taking()

    assert [each.ticket for each in lane.round.heard] == [ticket]
    assert shown(lane, ticket) == "queued"
    assert lane.waiting == []


class DiedError(BaseException):
    """A worker's death."""


POINTS = (
    (taking.Taker, "take", 2),
    (taking, "manifest_flaw", 2),
    (taking, "laid_tree", 1),
    (taking, "commit_tree", 1),
    (taking, "pin_new", 1),
    (records.Records, "put", 4),
    (board.Board, "entries", 2),
    (board.Board, "drop", 2),
    (board.Board, "show", 2),
    (FakeRound, "submit", 2),
)
"""The steps at which two entries are taken in, one of them refused, and how often each is done."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("where", "name", "call"), [(where, name, call) for where, name, calls in POINTS for call in range(1, calls + 1)]
)
def test_a_death_anywhere_counts_once(
    lane: Any, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, call: int, *, after: bool
) -> None:
    tickets = [lane.put({"src/a.py": b"a = 2\n"}), lane.put({"bench/run.py": b"x\n"})]
    with monkeypatch.context() as patch:
        patch.setattr(where, name, dying(getattr(where, name), call, after=after))
        with pytest.raises(DiedError):
            asyncio.run(lane.taking())
    lane.take()

    assert sorted(lane.round.states) == sorted(tickets)
    for ticket in tickets:
        assert len({each for each in lane.round.heard if each.ticket == ticket}) == 1
        assert shown(lane, ticket) == lane.round.states[ticket].state
    assert lane.waiting == []
    assert list(lane.store.path.glob("index-*")) == []
    left = {path.name for path in (lane.folder / "taken").iterdir()}
    assert left == {"lock", *(f"{ticket}.json" for ticket in tickets)}
    assert lane.take() == []


def dying(step: Callable[..., Any], call: int, *, after: bool) -> Callable[..., Any]:
    """The step, with a worker that dies before or after one of its calls."""
    calls = iter(range(1, 100))

    async def awaited(result: Any) -> None:
        await result
        raise DiedError

    def died(*args: Any, **kwargs: Any) -> Any:
        dies = next(calls) == call
        if dies and not after:
            raise DiedError
        result = step(*args, **kwargs)
        if dies and asyncio.iscoroutine(result):
            return awaited(result)
        if dies:
            raise DiedError
        return result

    return died


async def test_two_workers_do_not_take_in_at_once(lane: Any) -> None:
    make_desk(lane.folder)
    async with watching(lane):
        lane.put({"src/a.py": b"a = 2\n"})
        await until(lambda: lane.round.heard)
        second = asyncio.create_task(lane.taking())
        await asyncio.sleep(0.1)
        assert not second.done()
    await second
    assert len(lane.round.heard) == 1


def impostor(path: Path, kind: str, elsewhere: Path) -> None:
    if path.is_dir():
        path.rmdir()
    if kind == "link":
        elsewhere.mkdir(exist_ok=True)
        path.symlink_to(elsewhere)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("x")


@pytest.mark.parametrize("kind", ["link", "fifo", "file", "nothing"])
def test_another_thing_in_the_place_of_the_outbox_gains_nothing_and_stops_nothing(
    lane: Any, kind: str, tmp_path: Path
) -> None:
    make_desk(lane.folder)
    for name in ("outbox", "status"):
        impostor(lane.folder / "desk" / name, kind, tmp_path / "elsewhere")
    if kind == "link":
        (tmp_path / "elsewhere" / "r1-l1-00000000").mkdir()
    assert lane.take() == []
    assert lane.outbox.is_dir()
    assert not lane.outbox.is_symlink()

    ticket = lane.put({"src/a.py": b"a = 2\n"})

    assert [each.refused for each in lane.take()] == [None]
    assert shown(lane, ticket) == "queued"
    assert not list((tmp_path / "elsewhere").glob("*.json"))
    assert not list(lane.folder.glob(".trash-*"))


def test_another_thing_in_the_place_of_a_state_is_replaced(lane: Any, tmp_path: Path) -> None:
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    (lane.folder / "desk/status" / f"{ticket}.json" / "inner").mkdir(parents=True)
    lane.take()
    assert shown(lane, ticket) == "queued"
    other = lane.put({"src/a.py": b"a = 3\n"})
    (tmp_path / "precious").write_text("precious")
    (lane.folder / "desk/status" / f"{other}.json").symlink_to(tmp_path / "precious")
    lane.take()
    assert shown(lane, other) == "queued"
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["r1-l1-0000000", "r1-l1-000000000", "r1-l2-00000000", ".new-abc", "x\n", "r1-l1-ABCDEF00"]
)
def test_entries_of_other_names_are_not_looked_at(lane: Any, name: str) -> None:
    lane.put({"src/a.py": b"a = 2\n"}, name=name)
    assert lane.take() == []
    assert lane.waiting == [name]


@pytest.mark.parametrize("kind", ["link", "fifo", "file"])
def test_what_is_called_like_a_ticket_and_is_no_folder_is_dropped(lane: Any, kind: str, tmp_path: Path) -> None:
    make_desk(lane.folder)
    impostor(lane.outbox / "r1-l1-00000000", kind, tmp_path / "elsewhere")
    assert lane.take() == []
    assert lane.waiting == []
    assert kind != "link" or (tmp_path / "elsewhere").is_dir()


def test_an_outbox_full_of_rubbish_costs_little_and_stops_nothing(lane: Any) -> None:
    make_desk(lane.folder)
    outbox = os.open(lane.outbox, os.O_RDONLY)
    for number in range(100_000):
        os.close(os.open(f"rubbish-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=outbox))
    os.close(outbox)
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    begun = time.monotonic()
    (found,) = lane.take()
    assert (found.ticket, found.refused) == (ticket, None)
    assert time.monotonic() - begun < 20.0


def test_an_entry_with_much_beside_it_is_taken_and_removed_whole(lane: Any) -> None:
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    entry = lane.outbox / ticket
    deep = entry / "files"
    for number in range(100):
        (entry / f"extra-{number}").write_text("x")
        deep = deep / ("d" * 20)
    deep.mkdir(parents=True)
    (entry / "files").chmod(0o500)
    entry.chmod(0o500)
    assert [each.refused for each in lane.take()] == [None]
    assert lane.waiting == []
    (left,) = (lane.folder / "taken").glob("left-*")  # what is deep may be deleted only when nobody is there any more
    assert [path.name for path in left.iterdir()] == ["files"]
    close_attempt_folder(lane.home, CloseAttempt(attempt=lane.key, store=lane.store.key))
    assert [path.name for path in lane.folder.iterdir()] == ["closed"]


def test_a_lane_that_submits_far_more_than_it_may_is_heard_no_more(lane: Any) -> None:
    room = lane.plan.lanes[0].submissions + intake.SPARE
    for number in range(room + intake.SPARE + 10):
        lane.put({"src/a.py": str(number).encode()}, name=f"r1-l1-{number:08x}")
    lane.take()
    assert len(lane.round.heard) == room
    states = [json.loads(path.read_text()) for path in (lane.folder / "desk/status").iterdir()]
    assert len(states) == room + intake.SPARE
    assert sum(state["cause"] == "submission_cap" for state in states) == intake.SPARE
    assert lane.waiting == []
    assert lane.take() == []


def test_facts_and_program_edited_by_the_agent_gain_nothing(lane: Any) -> None:
    facts = json.loads((lane.tree / FACTS).read_text())
    everything = [[True, "."]]
    facts["rules"] = {"own": everything, "others": [], "protected": [], "closed": []}
    facts |= {"max_bytes": 1 << 40, "deadline": time.time() * 2, "globs": ["**"], "protected": []}
    (lane.tree / FACTS).write_text(json.dumps(facts))
    (lane.tree / "bench/run.py").write_text("cheat\n")
    lane.submit()
    assert [each.refused for each in lane.take()] == [Cause.PROTECTED]
    facts |= {"lane": "l2"}
    (lane.tree / FACTS).write_text(json.dumps(facts))
    lane.submit()
    assert lane.take() == []


async def test_the_deadline_passes_while_it_watches(lane: Any) -> None:
    make_desk(lane.folder)
    lane.deadline = time.time() + 1.0
    async with watching(lane):
        first = lane.put({"src/a.py": b"a = 2\n"})
        await until(lambda: shown(lane, first))
        await asyncio.sleep(max(0.0, lane.deadline - time.time()))
        second = lane.put({"src/a.py": b"a = 3\n"})
        await until(lambda: shown(lane, second))
    assert lane.round.heard[1].refused is Cause.LANE_DEADLINE


async def test_a_state_that_is_newer_than_what_is_remembered_stays(lane: Any) -> None:
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    await lane.taking()
    measured = lane.round.states[ticket].model_copy(update={"state": TicketState.MEASURED})
    status = lane.folder / "desk/status" / f"{ticket}.json"
    status.write_text(measured.model_dump_json())
    await lane.taking()
    assert shown(lane, ticket) == "measured"
    lane.round.states[ticket] = measured
    status.unlink()
    async with watching(lane):
        await until(lambda: shown(lane, ticket) == "measured")


def test_closing_the_lane_clears_desk_and_memory_and_nothing_comes_back(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    lane.submit()
    lane.take()
    (lane.folder / "desk/outbox/left").mkdir()
    close_attempt_folder(lane.home, CloseAttempt(attempt=lane.key, store=lane.store.key))
    assert [path.name for path in lane.folder.iterdir()] == ["closed"]
    assert lane.take() == []
    assert [path.name for path in lane.folder.iterdir()] == ["closed"]
