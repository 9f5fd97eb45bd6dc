"""A round's result is a chain of commits: a lane's files laid on a head, and the chain brought to a branch as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orch.activities.composing import composed, message
from orch.activities.promotion import promote
from orch.workflows.model.promotion import Promotion
from orch.workflows.model.reason import PromotionReason
from orch.workflows.model.round.lane import ComposeStep
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)

Scene = Any


def _plan(incumbent: str) -> RoundPlan:
    lanes = tuple(
        LanePlan(
            id=lane,
            entry=Entry(id=f"entry-{lane}", plane="memory", hypothesis=f"Cache what {lane} reads\nagain", headroom=0.1),
            globs=(f"{lane}/**",),
            agent="cmd:true",
        )
        for lane in ("one", "two")
    )
    return RoundPlan(
        id="r1",
        campaign="speed",
        campaign_digest="0" * 64,
        incumbent=incumbent,
        metric=Metric(name="t", direction=Direction.LOWER, unit="ms"),
        gates=Gates(),
        devices=(DeviceSet(name="d0"),),
        commands=Commands(benchmark=Command(run="true")),
        lanes=lanes,
    )


def _step(scene: Scene, plan: RoundPlan, lane: str, source: str, head: str) -> ComposeStep:
    return ComposeStep(
        run="round-1", store=scene.store.key, plan=plan, lane=lane, ticket=f"r1-{lane}-0", source=source, head=head
    )


def _one(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one/x").write_text("1\n")
    (folder / "one/x").chmod(0o755)
    (folder / "a.txt").unlink()


def _two(folder: Path) -> None:
    (folder / "two").mkdir()
    (folder / "two/link").symlink_to("../b.txt")


@pytest.fixture
def chain(scene: Scene) -> tuple[str, str, str]:
    """The incumbent, and a chain of two lanes on it."""
    start = scene.git.text("rev-parse", "HEAD")
    scene.snapshot()
    plan = _plan(start)
    first = scene.edited(start, _one, name="one")
    second = scene.edited(start, _two, name="two")
    head = composed(scene.store, _step(scene, plan, "one", first, start)).commit
    return start, head, composed(scene.store, _step(scene, plan, "two", second, head)).commit


def _promote(scene: Scene, old: str, new: str) -> Promotion:
    request = scene.request(old, new, "branch:fast").model_copy(update={"chain": True})
    return promote(scene.home, request)


def test_a_lane_is_laid_on_a_head_without_touching_the_others_files(scene: Scene, chain: tuple[str, str, str]) -> None:
    start, _, head = chain
    raw = scene.store.git.text("diff-tree", "-r", "--raw", "--no-renames", "--abbrev=1", start, head)
    found = [(line.split()[0], line.split()[1], line.split("\t")[1]) for line in raw.splitlines()]
    assert found == [
        (":100644", "000000", "a.txt"),
        (":000000", "100755", "one/x"),
        (":000000", "120000", "two/link"),
    ]


def test_the_same_step_again_is_the_same_commit(scene: Scene, chain: tuple[str, str, str]) -> None:
    start, head, _ = chain
    source = scene.store.git.text("rev-parse", "refs/orch/test/one")
    again = composed(scene.store, _step(scene, _plan(start), "one", source, start))
    assert again.commit == head
    assert scene.store.resolve("refs/orch/round-1/chain-one") == head


def test_a_commit_names_ticket_lane_plane_and_evidence(scene: Scene, chain: tuple[str, str, str]) -> None:
    lines = scene.store.git.text("show", "-s", "--format=%B", chain[1]).splitlines()
    assert lines[0] == "Cache what one reads again"
    assert {line.partition(":")[0] for line in lines[2:] if line} == {
        "Ticket", "Lane", "Entry", "Plane", "Round", "Evidence",
    }  # fmt: skip
    assert "Plane: memory" in lines
    assert message(_step(scene, _plan(chain[0]), "one", chain[1], chain[0])).endswith("round-ledger.json\n")


def test_a_new_branch_gets_the_chain_itself(scene: Scene, chain: tuple[str, str, str]) -> None:
    result = _promote(scene, chain[0], chain[2])
    assert result.refused is None
    assert scene.git.text("rev-list", "--reverse", f"{chain[0]}..fast").split() == list(chain[1:])
    assert _promote(scene, chain[0], chain[2]).paths == 0


def test_a_branch_that_stands_at_the_old_incumbent_moves_on(scene: Scene, chain: tuple[str, str, str]) -> None:
    scene.git.run("branch", "fast", chain[0])
    assert _promote(scene, chain[0], chain[1]).refused is None
    assert _promote(scene, chain[1], chain[2]).refused is None
    assert scene.git.text("rev-parse", "fast") == chain[2]


def test_a_branch_that_moved_meanwhile_stays(scene: Scene, chain: tuple[str, str, str]) -> None:
    other = scene.git.text("commit-tree", f"{chain[0]}^{{tree}}", "-p", chain[0], "-m", "theirs")
    scene.git.run("branch", "fast", other)
    result = _promote(scene, chain[0], chain[2])
    assert result.refused is not None
    assert result.refused.code is PromotionReason.BRANCH_EXISTS
    assert scene.git.text("rev-parse", "fast") == other


def test_a_branch_that_is_checked_out_is_not_moved_under_its_files(scene: Scene, chain: tuple[str, str, str]) -> None:
    scene.git.run("checkout", "-q", "-b", "fast")
    before = scene.files()
    result = _promote(scene, chain[0], chain[2])
    assert result.refused is not None
    assert scene.git.text("rev-parse", "fast") == chain[0]
    assert scene.files() == before
