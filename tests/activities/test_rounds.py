"""Preparing a round on its host: what is refused, what is found again; the user's repository stays as it is."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities import artifacts, reservations
from orch.activities import runs as runs_module
from orch.activities.artifacts import kept_plan
from orch.activities.campaigns import begun, record_round
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.rounds import Rounds, prepare_round
from orch.activities.sandbox import Flaw
from orch.activities.store import Store
from orch.workflows.model.goal import SandboxMode
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.reason import RunReason
from orch.workflows.model.round.campaign import RecordRound, Revision
from orch.workflows.model.round.plan import EntryStatus, RoundPlan
from orch.workflows.model.round.request import PrepareRound, RoundPrepared

FILES = {"src/a.py": "a", "src/b.py": "b", "bench/check.py": "check", "bench/run.py": "run"}

CHECK = {"path": "bench/check.py", "sha256": hashlib.sha256(b"check").hexdigest()}


@pytest.fixture
def repo(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    return make_repo(tmp_path / "project", FILES)


@pytest.fixture
def head(repo: Path, kit: ModuleType) -> str:
    found: str = kit.git(repo, "rev-parse", "HEAD")
    return found


def lane(name: str, *globs: str, agent: str = "cmd:true", **facts: Any) -> dict[str, Any]:
    entry = {"id": f"entry-{name}", "plane": "io", "hypothesis": f"of {name}", "headroom": 0.3}
    return {"id": name, "entry": entry, "globs": globs or (f"src/{name}.py",), "agent": agent, **facts}


def plan(incumbent: str, **facts: Any) -> RoundPlan:
    given = {
        "id": "r1",
        "campaign": "c",
        "campaign_digest": "0" * 64,
        "incumbent": incumbent,
        "metric": {"name": "latency", "direction": "lower", "unit": "ms"},
        "gates": {"validator": [CHECK]},
        "protected": ["/bench/"],
        "devices": [{"name": "d"}],
        "commands": {"setup": {"run": "true", "timeout_s": 60}, "benchmark": {"run": "true"}},
        "lanes": [lane("a"), lane("b")],
        **facts,
    }
    return RoundPlan.model_validate(given)


def request(repo: Path, frozen: RoundPlan, promote: str = "none", **facts: Any) -> PrepareRound:
    given = {"sandbox": SandboxMode.OFF, "host": "here-123456", **facts}
    return PrepareRound(
        run=f"round-c-{frozen.id}", repo=str(repo), plan=frozen, promote=PromoteTarget.parse(promote), **given
    )


async def awaited(step: Callable[..., Any], asked: PrepareRound) -> RoundPrepared:
    """What the activity returns."""
    found: RoundPrepared = await ActivityEnvironment().run(step, asked)
    return found


def refusal(prepared: RoundPrepared) -> tuple[RunReason, str]:
    assert prepared.refused is not None
    assert prepared.incumbent is None
    return prepared.refused.code, f"{prepared.refused.data['detail']} ({prepared.refused.data['hint']})"


def test_incumbent_is_imported_and_pinned_and_the_repository_is_untouched(
    home: Home, repo: Path, head: str, kit: ModuleType, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    (repo / "src/a.py").write_text("edited\n")
    kit.commit_all(repo)
    before = fingerprint(repo)

    found = asyncio.run(awaited(Rounds(home).prepare_round, request(repo, plan(head))))

    store = Store(home, found.store)
    assert found.refused is None
    assert (found.incumbent, found.baseline, found.sandbox) == (head, None, False)
    assert store.resolve("refs/orch/round-c-r1/incumbent") == head
    assert found.tree == kit.git(repo, "rev-parse", f"{head}^{{tree}}")
    assert any("the sandbox is off" in warning for warning in found.warnings)
    assert any("no processor is left for agents" in warning for warning in found.warnings)
    assert fingerprint(repo) == before


def test_what_is_kept_serves_places_and_the_collection(home: Home, repo: Path, head: str) -> None:
    found = prepare_round(home, request(repo, plan(head), path="/usr/bin:/bin"))

    asked, prepared = artifacts.kept_request(home, "round-c-r1"), artifacts.kept_prepared(home, "round-c-r1")
    assert (asked.repo, asked.agents, asked.path) == (str(repo), ("cmd:true",), "/usr/bin:/bin")
    assert (asked.contract.setup, asked.contract.setup_timeout_s, asked.contract.protected) == (
        "true",
        60,
        ("/bench/",),
    )
    assert prepared is not None
    assert prepared.baseline is not None
    assert (prepared.store, prepared.baseline.commit, prepared.sandbox) == (found.store, head, False)


def test_second_preparation_finds_the_first(home: Home, repo: Path, head: str, kit: ModuleType) -> None:
    first = prepare_round(home, request(repo, plan(head), "worktree"))
    (repo / "src/a.py").write_text("edited since\n")

    assert prepare_round(home, request(repo, plan(head), "worktree")) == first


def test_killed_before_it_was_done_it_is_done_again(home: Home, repo: Path, head: str) -> None:
    asked = request(repo, plan(head))
    first = prepare_round(home, asked)
    (home.run(asked.run) / "round-prepared.json").unlink()

    assert prepare_round(home, asked) == first


def test_other_plan_under_the_same_id_is_refused_with_both_digests(home: Home, repo: Path, head: str) -> None:
    one, other = plan(head), plan(head, aa_every=7)
    prepare_round(home, request(repo, one))

    code, told = refusal(prepare_round(home, request(repo, other)))

    assert code is RunReason.PREFLIGHT_FAILED
    assert one.digest in told
    assert other.digest in told
    assert kept_plan(home, "round-c-r1") == one


def test_round_that_has_ended_is_not_begun_again(home: Home, repo: Path, head: str) -> None:
    prepare_round(home, request(repo, plan(head)))
    artifacts.mark_closed(home, "round-c-r1")

    assert "round-c-r1 has ended" in refusal(prepare_round(home, request(repo, plan(head))))[1]


def test_round_that_was_begun_under_another_id_is_not_begun_twice(home: Home, repo: Path, head: str) -> None:
    asked = request(repo, plan(head))
    rotated = asked.model_copy(update={"run": "round-0123456789abcdef"})
    first = prepare_round(home, asked)

    told = refusal(prepare_round(home, rotated))[1]

    assert "round r1 was begun as round-c-r1" in told
    assert prepare_round(home, asked) == first
    assert begun(home, asked.plan) == "round-c-r1"


def test_round_whose_run_was_collected_before_its_end_may_be_begun_anew(home: Home, repo: Path, head: str) -> None:
    asked = request(repo, plan(head))
    prepare_round(home, asked)
    shutil.rmtree(home.run(asked.run))

    assert begun(home, asked.plan) == ""
    assert prepare_round(home, asked.model_copy(update={"run": "round-0123456789abcdef"})).refused is None


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown commit": ({"incumbent": "0" * 40}, f"{'0' * 40} is no commit of"),
    "changed validator": (
        {"gates": {"validator": [{**CHECK, "sha256": "0" * 64}]}},
        f"has the SHA-256 {CHECK['sha256']}, not the one given",
    ),
    "missing validator": (
        {"gates": {"validator": [{"path": "bench/none.py", "sha256": "0" * 64}]}},
        "`bench/none.py` is no file of the incumbent",
    ),
    "missing agent": ({"lanes": [lane("a", agent="cmd:no-such-agent go")]}, "lane 'a', agent 'cmd:no-such-agent go'"),
    "missing processor": ({"devices": [{"name": "d", "cpus": [99_999]}]}, "device set 'd':"),
    "missing GPU": ({"devices": [{"name": "d", "cuda": [99]}]}, "device set 'd':"),
    "common path": ({"lanes": [lane("a", "src/**"), lane("b")]}, "lanes `a` and `b` both match 1 path: src/b.py"),
    "protected path": ({"lanes": [lane("a", "**")]}, "reach 2 protected paths: bench/check.py, bench/run.py"),
    "one entry twice": (
        {"lanes": [lane("a"), {**lane("b"), "entry": lane("a")["entry"]}]},
        "lanes `a` and `b` pursue one entry",
    ),
}


@pytest.mark.parametrize(("facts", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_plan_that_cannot_be_held_here_is_refused(
    facts: dict[str, Any], said: str, home: Home, repo: Path, head: str
) -> None:
    frozen = plan(**{"incumbent": head, **facts})

    code, told = refusal(prepare_round(home, request(repo, frozen)))

    assert (code, said in told) == (RunReason.PREFLIGHT_FAILED, True), told


def test_no_repository_is_refused(home: Home, tmp_path: Path, head: str) -> None:
    assert "not a git repository" in refusal(prepare_round(home, request(tmp_path, plan(head))))[1]


def test_round_without_a_sandbox_is_refused_with_the_reason(
    home: Home, repo: Path, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "probe", lambda: Flaw("bwrap is not installed", "install bubblewrap"))

    _, told = refusal(prepare_round(home, request(repo, plan(head), sandbox=SandboxMode.REQUIRED)))

    assert "bwrap is not installed" in told
    assert "install bubblewrap; or start with --no-sandbox" in told


def recorded(home: Home, repo: Path, frozen: RoundPlan, status: str, new: str | None) -> None:
    store = Store.of(home, inspect(repo))
    row = Revision(
        campaign="c", round=frozen.id, run="r", entry="entry-a", lane="a", status=EntryStatus(status), why="because"
    )
    record_round(
        home,
        RecordRound(run="r", store=store.key, plan=frozen, revisions=(row,), incumbent=new),
        {},
    )


def test_incumbent_that_moved_since_the_plan_was_frozen_is_refused(
    home: Home, repo: Path, head: str, kit: ModuleType
) -> None:
    (repo / "src/a.py").write_text("faster\n")
    new = kit.commit_all(repo)
    recorded(home, repo, plan(head, id="r0"), "planned", new)

    told = refusal(prepare_round(home, request(repo, plan(head))))[1]

    assert f"the incumbent moved: the campaign stands at {new}, the plan starts from {head}" in told
    assert prepare_round(home, request(repo, plan(new, id="r2"))).incumbent == new


def test_incumbent_that_only_the_store_has_is_used(home: Home, repo: Path, head: str) -> None:
    store = Store.of(home, inspect(repo))
    new = store.git.text("commit-tree", store.git.text("rev-parse", f"{head}^{{tree}}"), "-p", head, "-m", "composed")
    recorded(home, repo, plan(head, id="r0"), "planned", new)

    assert prepare_round(home, request(repo, plan(new))).incumbent == new


def test_entry_that_was_rejected_meanwhile_is_refused(home: Home, repo: Path, head: str) -> None:
    recorded(home, repo, plan(head, id="r0"), "rejected", None)

    told = refusal(prepare_round(home, request(repo, plan(head))))[1]

    assert "entry `entry-a` was rejected since round r0 (because)" in told
    changed = plan(head, id="r2", lanes=[lane("a", condition="a new allocator")])
    assert prepare_round(home, request(repo, changed)).refused is None


def test_round_that_is_on_record_is_refused(home: Home, repo: Path, head: str) -> None:
    recorded(home, repo, plan(head, aa_every=9), "planned", None)

    assert "round r1 has run, with the digest" in refusal(prepare_round(home, request(repo, plan(head))))[1]


def test_campaign_of_another_repository_is_refused(
    home: Home, repo: Path, head: str, make_repo: Callable[..., Path], tmp_path: Path
) -> None:
    other = make_repo(tmp_path / "other", FILES)
    recorded(home, other, plan(head, id="r0"), "planned", None)

    assert "belongs to another repository (other-" in refusal(prepare_round(home, request(repo, plan(head))))[1]


def test_promotion_into_the_tree_takes_and_reserves_it(home: Home, repo: Path, head: str) -> None:
    (repo / "notes.txt").write_text("mine\n")

    found = prepare_round(home, request(repo, plan(head), "worktree"))

    store = Store(home, found.store)
    assert found.baseline is not None
    assert store.changed(head, found.baseline) == [b"notes.txt"]
    assert any("not the incumbent's in notes.txt" in warning for warning in found.warnings)
    assert reservations.reserve(home, store, repo, "goal-x") == "round-c-r1"
    busy = prepare_round(home, request(repo, plan(head, id="r2"), "worktree"))
    assert busy.refused is not None
    assert (busy.refused.code, busy.refused.data) == (RunReason.TREE_BUSY, {"run": "round-c-r1"})


def test_merge_in_progress_is_refused_for_the_tree_only(home: Home, repo: Path, head: str) -> None:
    (repo / ".git" / "MERGE_HEAD").write_text(head + "\n")

    told = refusal(prepare_round(home, request(repo, plan(head), "worktree")))[1]

    assert "a merge is in progress" in told
    assert prepare_round(home, request(repo, plan(head, id="r2"), "branch:faster")).refused is None
