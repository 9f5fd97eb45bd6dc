"""A campaign's record: appended to once, advanced by compare-and-set, whole whenever a process is killed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orch.activities import artifacts, campaigns
from orch.activities.campaigns import campaign_ref, read_record, record_round
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.workflows.model.round.campaign import RecordRound, Revision, RoundRecord
from orch.workflows.model.round.plan import EntryStatus, RoundPlan
from orch.workflows.model.round.trial import Noise, Scale

NOISE = Noise(scale=Scale.LOG, sigma=0.01, pairs=8, base=10.0)


@pytest.fixture
def store(make_repo: Callable[..., Path], tmp_path: Path, home: Home) -> Store:
    return Store.of(home, inspect(make_repo(tmp_path / "project")))


@pytest.fixture
def commits(store: Store) -> tuple[str, str, str]:
    """The old incumbent and two new ones."""
    tree = store.git.text("mktree", stdin=b"")
    one, two, three = (store.git.text("commit-tree", tree, "-m", name) for name in ("old", "new", "other"))
    return one, two, three


def plan(round_: str, incumbent: str) -> RoundPlan:
    return RoundPlan.model_validate(
        {
            "id": round_,
            "campaign": "c",
            "campaign_digest": "0" * 64,
            "incumbent": incumbent,
            "metric": {"name": "latency", "direction": "lower", "unit": "ms"},
            "gates": {},
            "devices": [{"name": "d"}],
            "commands": {"benchmark": {"run": "true"}},
            "lanes": [
                {
                    "id": "a",
                    "entry": {"id": f"x-{round_}", "plane": "io", "hypothesis": "h", "headroom": 0.1},
                    "globs": ["a.py"],
                    "agent": "cmd:true",
                }
            ],
        }
    )


DOCUMENT = {"lanes": [1.5]}


def recorded(home: Home, asked: RecordRound, **more: Any) -> RoundRecord:
    """Record a round whose document says next to nothing."""
    return record_round(home, asked, {**DOCUMENT, **more})


def request(store: Store, round_: str, old: str, new: str | None, **facts: Any) -> RecordRound:
    run = f"round-c-{round_}"
    row = Revision(
        campaign="c",
        round=round_,
        run=run,
        entry=f"x-{round_}",
        lane="a",
        status=EntryStatus.KEPT if new else EntryStatus.REJECTED,
        why="composed \u2028 here" if new else "no ticket passed",
        ticket=f"{round_}-a-00000000" if new else "",
    )
    return RecordRound(
        run=run,
        store=store.key,
        plan=plan(round_, old),
        revisions=(row,),
        incumbent=new,
        **facts,
    )


def test_campaign_without_a_record_stands_nowhere_and_nothing_is_made(home: Home) -> None:
    record = read_record(home, "c")

    assert (record.state.incumbent, record.state.rounds, record.revisions) == (None, (), ())
    assert not home.root.exists()


def test_round_is_recorded_and_the_incumbent_advances(home: Home, store: Store, commits: tuple[str, str, str]) -> None:
    old, new, _ = commits
    asked = request(store, "r1", old, new, noise=NOISE)

    done = recorded(home, asked)

    content = (home.run("round-c-r1") / done.path).read_bytes()
    assert (json.loads(content), done.size, done.moved) == (DOCUMENT, len(content), None)
    assert done.sha256 == hashlib.sha256(content).hexdigest()
    record = read_record(home, "c")
    assert (record.state.incumbent, record.state.evidence, record.state.noise) == (new, "round-c-r1", NOISE)
    assert record.state.rounds == (("r1", asked.plan.digest),)
    assert record.revisions == asked.revisions
    assert store.resolve(campaign_ref("c")) == new
    assert (home.campaign("c") / "rounds/r1.json").read_bytes() == content


def test_round_without_a_gain_leaves_the_incumbent_and_keeps_the_negative(
    home: Home, store: Store, commits: tuple[str, str, str]
) -> None:
    old, new, _ = commits
    recorded(home, request(store, "r1", old, new, noise=NOISE))

    recorded(home, request(store, "r2", new, None))

    record = read_record(home, "c")
    assert (record.state.incumbent, record.state.evidence, record.state.noise) == (new, "round-c-r1", NOISE)
    assert [row.status.value for row in record.revisions] == ["kept", "rejected"]


def test_rows_are_only_ever_appended(home: Home, store: Store, commits: tuple[str, str, str]) -> None:
    old, new, _ = commits
    recorded(home, request(store, "r1", old, new))
    before = (home.campaign("c") / "revisions.jsonl").read_bytes()

    recorded(home, request(store, "r2", new, None))

    assert (home.campaign("c") / "revisions.jsonl").read_bytes().startswith(before)


def test_recording_again_changes_nothing(home: Home, store: Store, commits: tuple[str, str, str]) -> None:
    old, new, other = commits
    first = recorded(home, request(store, "r1", old, new))
    recorded(home, request(store, "r2", new, other))
    before = read_record(home, "c")

    assert recorded(home, request(store, "r1", old, new)) == first
    assert read_record(home, "c") == before
    assert store.resolve(campaign_ref("c")) == other


def test_round_that_was_overtaken_does_not_move_the_incumbent(
    home: Home, store: Store, commits: tuple[str, str, str]
) -> None:
    old, new, other = commits
    recorded(home, request(store, "r1", old, new))

    late = recorded(home, request(store, "r2", old, other))

    record = read_record(home, "c")
    assert (late.moved, record.state.incumbent, store.resolve(campaign_ref("c"))) == (new, new, new)
    assert [row.status.value for row in record.revisions] == ["kept", "planned"]
    assert f"the incumbent is {new[:12]}" in record.revisions[1].condition
    assert recorded(home, request(store, "r2", old, other)).moved == new


def test_campaign_stays_with_the_repository_whose_round_was_recorded_first(
    home: Home, store: Store, commits: tuple[str, str, str], make_repo: Callable[..., Path], tmp_path: Path
) -> None:
    old, new, _ = commits
    other = Store.of(home, inspect(make_repo(tmp_path / "other")))
    recorded(home, request(store, "r1", old, None, noise=NOISE))

    late = recorded(home, request(other, "r2", old, new))
    idle = recorded(home, request(other, "r3", old, None, noise=NOISE.model_copy(update={"sigma": 0.5})))

    state = read_record(home, "c").state
    assert (state.store, state.incumbent, state.noise, late.moved, idle.moved) == (store.key, None, NOISE, old, None)
    assert [row.status.value for row in read_record(home, "c").revisions] == ["rejected", "planned", "rejected"]
    assert recorded(home, request(store, "r4", old, new)).moved is None
    assert read_record(home, "c").state.incumbent == new


def test_of_rounds_that_end_at_once_exactly_one_advances_the_incumbent(
    home: Home, store: Store, commits: tuple[str, str, str]
) -> None:
    old, *news = commits
    asked = [request(store, f"r{n}", old, news[n % 2]) for n in range(8)]

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda one: recorded(home, one), [*asked, *asked]))

    record = read_record(home, "c")
    winners = {one.run for one, told in zip([*asked, *asked], done, strict=True) if told.moved is None}
    assert winners == {record.state.evidence}
    assert sorted(name for name, _ in record.state.rounds) == [f"r{n}" for n in range(8)]
    assert sorted(row.status.value for row in record.revisions) == ["kept", *["planned"] * 7]
    assert {told.moved for told in done} == {None, record.state.incumbent}


class Killed(BaseException):
    """The process is gone at this point."""


STEPS = 5
"""Files that one record writes."""


@pytest.mark.parametrize("survived", range(STEPS + 1))
def test_killed_after_any_file_it_counts_once_and_whole(
    survived: int, home: Home, store: Store, commits: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, other = commits
    recorded(home, request(store, "r0", old, None))
    written = list[str]()
    real = artifacts.write_whole

    def counted(path: Path, text: str, **how: bool) -> None:
        if len(written) == survived:
            raise Killed
        written.append(path.name)
        real(path, text, **how)

    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "write_whole", counted)
        try:
            recorded(home, request(store, "r1", old, new))
        except Killed:
            assert survived < STEPS

    seen = read_record(home, "c")
    counted_rounds, rows = [name for name, _ in seen.state.rounds], [row.round for row in seen.revisions]
    assert counted_rounds == rows
    assert (seen.state.incumbent == new) == ("r1" in counted_rounds)
    recorded(home, request(store, "r2", old, other))  # another round does not wait for the retry
    recorded(home, request(store, "r1", old, new))

    record = read_record(home, "c")
    assert sorted(row.round for row in record.revisions) == ["r0", "r1", "r2"]
    assert sorted(row.status.value for row in record.revisions) == ["kept", "planned", "rejected"]
    assert record.state.incumbent == (new if "r1" in counted_rounds else other)
    assert not (home.campaign("c") / campaigns.DECIDED).exists()


def test_record_is_on_the_disk_before_what_was_decided_is_forgotten(
    home: Home, store: Store, commits: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[int]()
    real = os.fsync

    def noted(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        real(file)

    monkeypatch.setattr(os, "fsync", noted)
    recorded(home, request(store, "r1", *commits[:2]))

    folder = home.campaign("c")
    assert len(synced) == 3
    assert synced[1:] == [(folder / name).stat().st_ino for name in (campaigns.REVISIONS, campaigns.STATE)]


def test_value_that_is_no_json_is_a_bug_and_nothing_is_recorded(
    home: Home, store: Store, commits: tuple[str, str, str]
) -> None:
    old, new, _ = commits
    asked = request(store, "r1", old, new)

    with pytest.raises(ValueError, match="JSON"):
        recorded(home, asked, gain=float("nan"))

    assert read_record(home, "c").revisions == ()
