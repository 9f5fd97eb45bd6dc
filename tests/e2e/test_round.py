"""Rounds of the running system: real lanes, real measurements, one composition, everything in one ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from orch import Client
from orch.activities.campaigns import read_record
from orch.activities.home import Home
from orch.activities.job_records import seconds_of
from orch.activities.trials.holding import DEVICE, FILE, Holding
from orch.activities.trials.processors import TRIAL
from orch.workflows.model.round.composition import StepResult
from orch.workflows.model.round.event import HeadRerun, RoundReady, RoundStarted, TicketMeasured, TicketQueued
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.plan import EntryStatus
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement

from .playing import Played, play

pytestmark = [pytest.mark.engine]

Fingerprint = Callable[[Path], dict[str, str]]


@pytest.fixture(scope="module")
def honest(
    engine_home: Home,
    rounds: ModuleType,
    scripted: ModuleType,
    kit: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
) -> Played:
    """One round of lanes that do what they should, and some that are careless."""
    lanes = [
        rounds.Lane("parse", scripted.gain("parse", 0.5)),
        rounds.Lane("layout", scripted.out_of_globs("layout", 0.6)),
        rounds.Lane("index", scripted.gain("index", 0.4)),
        rounds.Lane("cache", scripted.gain("cache", 0.45)),
        rounds.Lane("emit", scripted.identical("emit", 0.6)),
        rounds.Lane("sort", scripted.gains("sort", 1.5, 1.4), more={"submissions": 1}),
        rounds.Lane("names", scripted.at_once("names", 0.4, 4)),
    ]
    folder = tmp_path_factory.mktemp("honest")
    return asyncio.run(play(Client(engine_home), rounds, folder, lanes, aa_every=20, look=kit.fingerprint))


@pytest.fixture(scope="module")
def cheats(
    engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Played:
    """One round of lanes that cheat, each in its way, beside one that does not."""
    bench = (rounds.SYNTHETIC / "bench/bench.py").read_text().replace("return sum(float", "return 0.1 * sum(float")
    own = ("engine/layout/knob.py", "100644", rounds.knob(0.1))
    lanes = [
        rounds.Lane("parse", scripted.forged(("bench/bench.py", "100644", bench))),
        rounds.Lane("layout", scripted.forged(own, sha256="0" * 64)),
        rounds.Lane("index", scripted.wrapper_edited("index", 0.4)),
        rounds.Lane("cache", scripted.linked("cache", "../../../../../../etc/passwd")),
        rounds.Lane("emit", scripted.changes_after_submit("emit", 0.6, after=0.01)),
        rounds.Lane("sort", scripted.wrong("sort", 0.1)),
        rounds.Lane("names", scripted.forged(("engine/parse/knob.py", "100644", rounds.knob(0.1)))),
    ]
    return asyncio.run(play(Client(engine_home), rounds, tmp_path_factory.mktemp("cheats"), lanes, aa_every=20))


def test_honest_gain_is_measured_composed_and_rerun(honest: Played) -> None:
    (measured,) = honest.measured("parse")

    assert measured.evaluation.verdict is Judgement.PASSED
    assert measured.evaluation.gain_unit == pytest.approx(15, abs=1)
    assert honest.steps()["parse"].step.result is StepResult.FIRST
    assert honest.decided.lanes[0] == "parse"
    assert honest.reason == "done"


def test_new_incumbent_is_a_chain_of_one_commit_per_lane(honest: Played, rounds: ModuleType, engine_home: Home) -> None:
    store, chain = chain_of(honest, engine_home, rounds)

    assert tuple(chain) == honest.decided.chain
    assert honest.decided.lanes == ("parse", "index", "layout", "emit", "names")
    for lane, commit in zip(honest.decided.lanes, honest.decided.chain, strict=True):
        message = rounds.git(store, "log", "-1", "--format=%B", commit)
        assert lane in message
        assert honest.steps()[lane].step.ticket in message
        assert rounds.git(store, "diff", "--name-only", f"{commit}^", commit).split() == [f"engine/{lane}/knob.py"]


def test_file_outside_of_the_globs_is_not_handed_over(honest: Played) -> None:
    (measured,) = honest.measured("layout")

    assert measured.evaluation.verdict is Judgement.PASSED
    (paths,) = [e.submission.paths for e in honest.all(TicketQueued) if e.submission.lane == "layout"]
    assert paths == ("engine/layout/knob.py",)


def test_second_lane_at_one_bottleneck_fails_its_step_and_goes_back_to_planned(
    honest: Played, engine_home: Home
) -> None:
    step = honest.steps()["cache"].step

    assert honest.verdicts("cache") == [Judgement.PASSED]
    assert step.result is StepResult.SKIPPED
    assert step.interaction is not None
    assert step.interaction < 0.2
    assert statuses(honest, engine_home)["cache"] is EntryStatus.PLANNED


def test_orthogonal_lanes_have_a_ratio_near_1(honest: Played) -> None:
    ratios = [honest.steps()[lane].step.interaction or 0.0 for lane in ("index", "layout", "emit")]

    assert ratios == pytest.approx([1, 1, 1], abs=0.3)


def test_identical_files_are_one_ticket_and_one_measurement(honest: Played) -> None:
    assert len(honest.queued("emit")) == 1
    assert len(honest.measured("emit")) == 1


def test_submitting_at_the_same_instant_is_one_ticket(honest: Played) -> None:
    assert len(honest.queued("names")) == 1
    assert len(honest.measured("names")) == 1


def test_regression_is_measured_and_wins_nothing(honest: Played, engine_home: Home) -> None:
    assert honest.verdicts("sort") == [Judgement.REGRESSION]
    assert "sort" not in honest.steps()
    assert statuses(honest, engine_home)["sort"] is EntryStatus.REJECTED


def test_lane_past_its_cap_submits_no_more(honest: Played) -> None:
    assert len(honest.queued("sort")) == 1
    assert honest.causes("sort") == [Cause.CAP]


def test_composed_gain_is_measured_anew_from_fresh_checkouts(honest: Played) -> None:
    rerun = honest.only(HeadRerun)

    assert rerun.rerun.commit == honest.decided.incumbent
    assert rerun.rerun.evaluation.gain_unit == pytest.approx(15 + 12 + 8 + 4 + 3, abs=1.5)


def test_campaign_stands_at_the_new_incumbent(honest: Played, engine_home: Home) -> None:
    state = read_record(engine_home, honest.only(RoundStarted).plan.campaign).state

    assert state.incumbent == honest.decided.incumbent
    assert [name for name, _ in state.rounds] == ["r1"]
    assert {lane for lane, status in statuses(honest, engine_home).items() if status is EntryStatus.KEPT} == set(
        honest.decided.lanes
    )


def test_round_touches_nothing_of_the_user(honest: Played, fingerprint: Fingerprint) -> None:
    assert honest.before
    assert fingerprint(honest.repo) == honest.before


def test_edit_of_the_benchmark_is_rejected(cheats: Played) -> None:
    assert cheats.causes("parse") == [Cause.PROTECTED]
    assert cheats.measured("parse") == []


def test_content_that_has_another_hash_is_rejected(cheats: Played) -> None:
    assert cheats.causes("layout") == [Cause.HASH_MISMATCH]


def test_wrapper_that_was_edited_gains_nothing(cheats: Played) -> None:
    assert cheats.causes("index") == [Cause.PROTECTED]


def test_link_out_of_the_checkout_is_rejected(cheats: Played) -> None:
    assert cheats.causes("cache") == [Cause.LINK_ESCAPES]


def test_file_of_another_lane_is_rejected(cheats: Played) -> None:
    assert cheats.causes("names") == [Cause.OUT_OF_SCOPE]


def test_bytes_changed_after_submit_are_not_measured(cheats: Played) -> None:
    (measured,) = cheats.measured("emit")

    assert measured.evaluation.gain_unit == pytest.approx(4, abs=1)


def test_wrong_result_is_no_gain_however_fast(cheats: Played) -> None:
    assert cheats.verdicts("sort") == [Judgement.INVALID]
    assert cheats.decided.lanes == ("emit",)


async def test_lane_past_its_deadline_is_ended_and_nothing_more_is_taken_in(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [
        rounds.Lane("parse", scripted.late("parse", 35), more={"deadline": "30s"}),
        rounds.Lane("layout", scripted.gain("layout")),
    ]

    done = await play(client, rounds, tmp_path, lanes)

    assert done.ends()["parse"] is LaneEnd.DEADLINE
    assert done.exits("parse")[0].startswith("timed out")
    assert len(done.queued("parse")) == 1
    assert set(done.decided.lanes) == {"parse", "layout"}


async def test_lanes_that_measure_at_once_never_share_a_device_set(
    client: Client, engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane(name, scripted.gains(name, 0.5, 0.6)) for name in ("parse", "layout")]
    devices = [{"name": "first", "cpus": [0]}, {"name": "second", "cpus": [1]}]

    done = await play(client, rounds, tmp_path, lanes, devices=devices, aa_every=20, model={"sleep_s": 0.1})

    used, tickets = spans(engine_home, done), {event.measurement.ordinal for event in done.all(TicketMeasured)}
    assert {span.device for span in used} == {"first", "second"}
    assert not [both for both in combinations(used, 2) if both[0].device == both[1].device and overlap(*both)]
    at_once = [both for both in combinations(used, 2) if overlap(*both)]
    assert [both for both in at_once if {span.measurement for span in both} <= tickets]


class Span(NamedTuple):
    """When a measurement held a device set, in Unix time."""

    device: str
    measurement: int
    begun: float
    ended: float


def spans(home: Home, done: Played) -> list[Span]:
    """All of a round, by what each job that held a device left on the disk."""
    found = []
    for path in (home.run(done.run) / "attempts").glob(f"i2-*/{FILE}*.json"):
        begun = Holding.model_validate_json(path.read_bytes()).since
        job = path.with_name(f"{TRIAL}{path.stem.removeprefix(FILE)}")
        device, number = (path.parent / DEVICE).read_text(), int(path.parent.name.rpartition("-b")[2])
        found.append(Span(device, number, begun, begun + seconds_of(job)))
    return found


def overlap(one: Span, other: Span) -> bool:
    return min(one.ended, other.ended) > max(one.begun, other.begun)


def chain_of(done: Played, home: Home, rounds: ModuleType) -> tuple[Path, list[str]]:
    """The store that holds the new incumbent, and its commits since the old one, oldest first."""
    store = home.store(done.only(RoundReady).store) / "store.git"
    between = f"{done.only(RoundReady).incumbent}..{done.decided.incumbent}"
    return store, rounds.git(store, "log", "--format=%H", "--reverse", between).split()


def statuses(done: Played, home: Home) -> dict[str, EntryStatus]:
    """Where the campaign's record says that each entry stands."""
    return {row.entry: row.status for row in read_record(home, done.only(RoundStarted).plan.campaign).revisions}
