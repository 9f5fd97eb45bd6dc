"""What runs left in artifact stores goes with them; what others published, or a kept run needs, stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.activities import artifacts
from orch.activities.collecting.found import Collected
from orch.activities.collecting.plan import Policy, collect, survey
from orch.activities.exchange.bundles import LATEST, Parcel, bring, publish, publish_baseline, records
from orch.activities.exchange.outputs import publish_outputs
from orch.activities.home import Home
from orch.activities.store import Store
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.placement import Exchange

NOBODY = frozenset[str]()
OLD = Policy(older_s=86_400)
Age = Callable[..., None]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def exchange(state: Any, shared: Path) -> Exchange:
    return Exchange(url=shared.as_uri(), key=f"{state.store.key}.here-1")


def publishes(state: Any, exchange: Exchange, run: str, text: str) -> tuple[str, str]:
    """A run on a new baseline, with a candidate and its outputs, published; both commits."""
    (state.repo / "a.txt").write_text(text)
    state.begin(run)
    baseline = state.store.resolve(f"refs/orch/{run}/baseline")
    publish_baseline(state.store, exchange, baseline)
    candidate = state.pin(run, text)
    publish(state.store, exchange, candidate, base=baseline)
    state.attempt(run)
    publish_outputs(state.home, exchange, AttemptKey(run=run, iteration=1, candidate=1, binding=1))
    return baseline, candidate


def exchanges(found: list[Collected]) -> list[Collected]:
    return [item for item in found if item.kind == "exchange"]


def commits(shared: Path) -> set[str]:
    return {path.stem for path in shared.glob("*/commits/*.json")}


def test_what_a_forgotten_run_published_goes_and_the_newest_baseline_stays_with_all_it_builds_on(
    state: Any, shared: Path, exchange: Exchange, age: Age, tmp_path: Path
) -> None:
    first, lost = publishes(state, exchange, "old", "one\n")
    second, kept = publishes(state, exchange, "new", "two\n")
    for run, days in (("old", 3.0), ("new", 0.0)):
        state.close(run, days=days)
    age(shared)
    before = sum(path.stat().st_size for path in shared.rglob("*") if path.is_file())

    found = collect(state.home, NOBODY, OLD)

    assert [item.flaw for item in exchanges(found)] == [""]
    assert commits(shared) == {first, second, kept}  # the second baseline is thin to the first
    assert lost not in commits(shared)
    assert [path.name for path in shared.glob("*/outputs/*")] == ["new"]
    left = sum(path.stat().st_size for path in shared.rglob("*") if path.is_file())
    assert before - left == exchanges(found)[0].bytes
    there = Store(Home(tmp_path / "there"), exchange.key)
    bring(there, exchange, kept, pin="refs/orch/new/from")
    assert there.tree_of(kept) == state.store.tree_of(kept)


def test_all_of_it_goes_when_no_run_is_left_and_nothing_was_published_for_long(
    state: Any, shared: Path, exchange: Exchange, age: Age
) -> None:
    publishes(state, exchange, "old", "one\n")
    state.close("old", days=3)

    recent = collect(state.home, NOBODY, OLD)
    age(shared, 2)
    found = collect(state.home, NOBODY, OLD)

    assert exchanges(recent) == []
    assert [item.flaw for item in exchanges(found)] == ["", ""]
    assert list(shared.iterdir()) == []
    assert state.store.git.text("for-each-ref", f"{LATEST}/") == ""
    assert list(records(state.home).iterdir()) == []


def test_nothing_goes_while_a_run_of_the_repository_may_be_live_or_is_kept(
    state: Any, shared: Path, exchange: Exchange, age: Age
) -> None:
    _, candidate = publishes(state, exchange, "live", "one\n")
    age(shared, 9)
    before = sorted(shared.rglob("*"))

    collect(state.home, NOBODY, Policy(older_s=0))
    state.close("live")
    line = f'{{"commit": "{candidate}"}}\n'
    (state.home.run("live") / artifacts.LEDGER).write_text(line)
    state.store.git.run("update-ref", "-d", "refs/orch/live/i1-c1-b1")  # a loser that another host made is not here
    collect(state.home, NOBODY, OLD)

    assert sorted(shared.rglob("*")) == before


def test_what_others_published_is_not_looked_at(
    state: Any, shared: Path, exchange: Exchange, age: Age, kit: ModuleType
) -> None:
    theirs = shared / f"{state.store.key}.there-2" / "commits" / f"{'1' * 40}.json"
    kit.write(shared, {str(theirs.relative_to(shared)): Parcel(commit="1" * 40).model_dump_json(), "note": "mine"})
    publishes(state, exchange, "old", "one\n")
    state.close("old", days=3)
    age(shared, 9)

    collect(state.home, NOBODY, OLD)

    assert theirs.exists()
    assert (shared / "note").exists()
    assert not (shared / exchange.key).exists()


def test_run_that_begins_between_look_and_collection_keeps_everything(
    state: Any, shared: Path, exchange: Exchange, age: Age
) -> None:
    publishes(state, exchange, "old", "one\n")
    state.close("old", days=3)
    age(shared, 9)
    before = commits(shared)
    plan = survey(state.home, NOBODY, OLD)
    state.begin("new")

    found = [one for one in plan.found if one.kind == "exchange"]
    for one in found:
        with pytest.raises(Exception, match="a run began that uses it"):
            one.remove()

    assert len(found) == 2
    assert commits(shared) == before


def test_artifact_store_that_is_away_is_told_when_its_turn_comes(
    state: Any, shared: Path, exchange: Exchange, age: Age
) -> None:
    publishes(state, exchange, "old", "one\n")
    state.close("old", days=3)
    shared.rename(shared.with_name("away"))

    soon = collect(state.home, NOBODY, OLD)
    age(records(state.home), 2)
    later = collect(state.home, NOBODY, OLD)

    assert exchanges(soon) == []
    assert ["cannot be read" in item.flaw for item in exchanges(later)] == [True]
    assert len(list(records(state.home).iterdir())) == 1


def test_store_of_another_hosts_repository_goes_when_nothing_in_it_is_pinned(
    state: Any, exchange: Exchange, age: Age, tmp_path: Path
) -> None:
    there = Home(tmp_path / "there")
    baseline, _ = publishes(state, exchange, "r1", "one\n")
    visited = Store(there, exchange.key)
    bring(visited, exchange, baseline, pin=f"refs/orch/r1/from-{baseline}")
    shutil.copytree(state.home.run("r1"), there.run("r1"))
    prepared = (there.run("r1") / artifacts.PREPARED).read_text().replace(state.store.key, exchange.key)
    (there.run("r1") / artifacts.PREPARED).write_text(prepared)
    artifacts.mark_closed(there, "r1")

    collect(there, NOBODY, OLD)
    pinned = visited.git_dir.exists()
    age(there.root, 3)
    found = collect(there, NOBODY, OLD)

    assert pinned
    assert {item.kind for item in found} >= {"result", "store"}
    assert not visited.path.exists()
