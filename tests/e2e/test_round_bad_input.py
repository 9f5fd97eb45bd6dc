"""What a round must withstand: plans that cannot be, benchmarks that mislead, floods, and rounds that meet."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.workflows.errors import RefusedError
from orch.workflows.model.round.event import GuardMeasured, RoundReady
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement, Scale

from .playing import play, played
from .test_round import overlap, spans

pytestmark = [pytest.mark.engine]


async def test_incumbent_that_moved_is_refused(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    first = await play(client, rounds, tmp_path, [rounds.Lane("parse", scripted.gain("parse"))])
    old = first.only(RoundReady).incumbent
    text = first.plan.read_text().replace("round: r1", f"round: r2\nincumbent: {old}").replace("parse", "layout")
    campaign = first.plan.with_name("campaign.yaml")
    campaign.write_text(campaign.read_text().replace("id: parse", "id: layout"))
    first.plan.write_text(text)

    with pytest.raises(RefusedError, match="incumbent moved"):
        await client.start_round(first.plan, repo=first.repo)


async def test_benchmark_that_fails_on_the_incumbent_ends_the_round_before_any_agent(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    done = await play(client, rounds, tmp_path, [rounds.Lane("parse", scripted.gain("parse"))], model={"exit": 3})

    assert done.reason == "incumbent_fails"
    assert done.ends() == {}


async def test_wrong_unit_on_the_incumbent_is_no_value(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    done = await play(client, rounds, tmp_path, [rounds.Lane("parse", scripted.gain("parse"))], model={"unit": "s"})

    assert done.reason == "incumbent_fails"


async def test_host_that_is_too_noisy_begins_no_round(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse"))]

    done = await play(client, rounds, tmp_path, lanes, model={"sigma": 1.0}, gates={"noise": 0.01})

    assert done.reason == "too_noisy"
    assert done.ends() == {}


async def test_metric_without_any_variance_is_measured(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse")), rounds.Lane("layout", scripted.gain("layout", 1.0 - 1e-12))]

    done = await play(client, rounds, tmp_path, lanes, model={"sigma": 0.0})

    assert done.verdicts("parse") == [Judgement.PASSED]
    assert done.verdicts("layout") != [Judgement.PASSED]
    assert done.decided.lanes == ("parse",)


async def test_metric_that_changes_its_sign_is_measured_in_its_own_unit(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse", 0.2))]

    done = await play(client, rounds, tmp_path, lanes, model={"offset": -90.0})

    (measured,) = done.measured("parse")
    assert done.all(GuardMeasured)[0].noise is not None
    assert measured.evaluation.scale is Scale.DIFFERENCE
    assert measured.evaluation.gain_unit == pytest.approx(24, abs=1)
    assert measured.evaluation.base is not None
    assert measured.evaluation.candidate is not None
    assert measured.evaluation.base > 0 > measured.evaluation.candidate
    assert done.decided.lanes == ("parse",)


async def test_device_set_that_does_not_exist_is_refused(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse"))]

    with pytest.raises(RefusedError, match="4000"):
        await play(client, rounds, tmp_path, lanes, devices=[{"name": "none", "cpus": [4000]}])


async def test_flooded_outbox_harms_nobody_else(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [
        rounds.Lane("parse", scripted.full_outbox(100_000, "2G")),
        rounds.Lane("layout", scripted.gain("layout")),
        rounds.Lane("emit", scripted.many_files("emit", 3_000)),
        rounds.Lane("sort", scripted.large_file("sort", "2G")),
    ]

    done = await play(client, rounds, tmp_path, lanes)

    assert done.decided.lanes == ("layout",)
    assert done.queued("parse") == done.queued("emit") == done.queued("sort") == []
    assert len(done.causes("parse")) <= 50


async def test_two_rounds_on_one_device_set_take_turns(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    device = [{"name": "cpu", "cpus": [0]}]

    one, other = await asyncio.gather(
        *(
            play(client, rounds, tmp_path / name, [rounds.Lane(name, scripted.gain(name))], devices=device)
            for name in ("parse", "layout")
        )
    )

    assert (one.decided.lanes, other.decided.lanes) == (("parse",), ("layout",))
    assert not [both for both in product(spans(one), spans(other)) if overlap(*both)]


async def test_changed_plan_under_the_same_id_is_refused(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    first = await play(client, rounds, tmp_path, [rounds.Lane("parse", scripted.gain("parse"))])
    first.plan.write_text(first.plan.read_text().replace("aa_every: 6", "aa_every: 5"))

    with pytest.raises(RefusedError, match="r1"):
        await played(client, first.repo, first.plan)


async def test_two_lanes_that_both_submit_past_their_caps_leave_the_others_their_turn(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    more = {"submissions": 1}
    greedy = [rounds.Lane(name, scripted.gains(name, 0.9, 0.8, 0.7), more=more) for name in ("parse", "layout")]

    done = await play(client, rounds, tmp_path, [*greedy, rounds.Lane("emit", scripted.gain("emit", 0.3))])

    assert done.causes("parse") == done.causes("layout") == [Cause.CAP, Cause.CAP]
    assert done.verdicts("emit") == [Judgement.PASSED]
