"""What a round must withstand: plans that cannot be, benchmarks that mislead, floods, and rounds that meet."""

from __future__ import annotations

import asyncio
import shutil
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

from orch import Client
from orch.activities.home import Home
from orch.workflows.errors import RefusedError
from orch.workflows.model.round.event import RoundReady
from orch.workflows.model.round.trial import Judgement

from .playing import Played, play
from .test_round import Span, overlap, spans

pytestmark = [pytest.mark.engine]


@pytest.fixture(scope="module")
def first(
    engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Played:
    """A round that was played, and gave its campaign another incumbent."""
    lanes = [rounds.Lane("parse", scripted.gain("parse"))]
    return asyncio.run(play(Client(engine_home), rounds, tmp_path_factory.mktemp("first"), lanes))


def rewritten(done: Played, folder: Path, *changes: tuple[str, str]) -> Path:
    """Copies of a round's files, with texts of the round plan replaced; the path of that."""
    shutil.copytree(done.plan.parent, folder / "plans")
    plan = folder / "plans" / done.plan.name
    text = plan.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    plan.write_text(text)
    return plan


async def test_incumbent_that_moved_is_refused(client: Client, first: Played, tmp_path: Path) -> None:
    old = first.only(RoundReady).incumbent
    plan = rewritten(first, tmp_path, ("round: r1", f"round: r2\nincumbent: {old}"))

    with pytest.raises(RefusedError, match="incumbent moved"):
        await client.start_round(plan, repo=first.repo)


async def test_changed_plan_under_the_same_id_is_refused(client: Client, first: Played, tmp_path: Path) -> None:
    plan = rewritten(first, tmp_path, ("aa_every: 6", "aa_every: 5"))

    with pytest.raises(RefusedError, match=r"round `r1` .* has run"):
        await client.start_round(plan, repo=first.repo)


async def test_round_that_has_ended_is_not_played_again(client: Client, first: Played) -> None:
    with pytest.raises(RefusedError, match=r"round `r1` .* has run"):
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


@pytest.mark.soak
async def test_host_that_is_too_noisy_begins_no_round(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse"))]

    done = await play(client, rounds, tmp_path, lanes, model={"sigma": 1.0}, gates={"noise": 0.01})

    assert done.reason == "too_noisy"
    assert done.ends() == {}


@pytest.mark.soak
async def test_metric_without_any_variance_is_measured(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse")), rounds.Lane("layout", scripted.gain("layout", 1.0 - 1e-12))]

    done = await play(client, rounds, tmp_path, lanes, model={"sigma": 0.0})

    assert done.verdicts("parse") == [Judgement.PASSED]
    (nothing,) = done.verdicts("layout")
    assert nothing is not Judgement.PASSED
    assert done.decided.lanes == ("parse",)


@pytest.mark.soak
async def test_metric_that_changes_its_sign_is_no_gain_and_harms_nobody_else(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse", 0.2)), rounds.Lane("layout", scripted.gain("layout", 0.8))]

    done = await play(client, rounds, tmp_path, lanes, model={"offset": -90.0}, aa_every=20)

    (measured,) = done.measured("parse")
    assert measured.evaluation.verdict is Judgement.UNEVALUABLE
    assert "changes its sign" in measured.evaluation.why
    assert {sample.value > 0 for pair in measured.measurement.pairs for sample in pair.b if sample.value} == {False}
    assert done.decided.lanes == ("layout",)


async def test_device_set_that_does_not_exist_is_refused(
    client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    lanes = [rounds.Lane("parse", scripted.gain("parse"))]

    with pytest.raises(RefusedError, match="4000"):
        await play(client, rounds, tmp_path, lanes, devices=[{"name": "none", "cpus": [4000]}])


@pytest.mark.soak
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


def min_begun(found: list[Span]) -> float:
    return min(span.begun for span in found)


@pytest.mark.soak
async def test_two_rounds_on_one_device_set_take_turns(
    client: Client, engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    device = [{"name": "cpu", "cpus": [0]}]

    one, other = await asyncio.gather(
        *(
            play(client, rounds, tmp_path / name, [rounds.Lane(name, scripted.gain(name))], devices=device)
            for name in ("parse", "layout")
        )
    )

    assert (one.decided.lanes, other.decided.lanes) == (("parse",), ("layout",))
    mine, others = spans(engine_home, one), spans(engine_home, other)
    assert not [both for both in product(mine, others) if overlap(*both)]
    first, last = min(mine, others, key=min_begun), max(mine, others, key=min_begun)
    assert min_begun(last) < max(span.ended for span in first)  # they wanted it at once
