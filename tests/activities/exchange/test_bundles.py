"""Commits reach another host by way of an artifact store: whole once, then at the cost of what changed."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.activities.exchange.bundles import (
    Parcel,
    bring,
    is_published,
    publish,
    publish_baseline,
    refresh_settings,
)
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.activities.workspaces.clone import CloneProvider
from orch.workflows.errors import HostFaultError

PIN = "refs/orch/r1/from-there"


def test_commit_arrives_with_its_history(scene: Any, kit: ModuleType) -> None:
    first = kit.git(scene.repo, "rev-parse", "HEAD")
    (scene.repo / "a.txt").write_text("two\n")
    commit = scene.baseline("r1")
    publish_baseline(scene.here, scene.exchange, commit)

    bring(scene.there, scene.exchange, commit, pin=PIN)

    assert scene.there.tree_of(commit) == scene.here.tree_of(commit)
    assert scene.there.resolve(first) == first
    assert scene.there.resolve(PIN) == commit
    assert scene.there.git.ok("fsck", "--strict")


def test_second_baseline_costs_what_changed(scene: Any, kit: ModuleType) -> None:
    (scene.repo / "noise").write_bytes(random.Random(1).randbytes(300_000))
    kit.commit_all(scene.repo)
    publish_baseline(scene.here, scene.exchange, scene.baseline("r1"))
    before = scene.size()
    (scene.repo / "a.txt").write_text("two\n")
    commit = scene.baseline("r2")

    parcel = publish_baseline(scene.here, scene.exchange, commit)
    bring(scene.there, scene.exchange, commit, pin=PIN)

    assert before > 300_000
    assert scene.size() - before < 3_000
    assert parcel.base
    assert scene.there.tree_of(commit) == scene.here.tree_of(commit)


def test_candidate_comes_back_thin_to_the_commit_it_started_from(scene: Any, kit: ModuleType) -> None:
    start = scene.baseline("r1")
    publish_baseline(scene.here, scene.exchange, start)
    bring(scene.there, scene.exchange, start, pin=PIN)
    blob = scene.there.git.text("hash-object", "-w", "--stdin", stdin=b"made there\n")
    tree = scene.there.git.text("mktree", stdin=f"100644 blob {blob}\ta.txt\n".encode())
    made = scene.there.git.text("commit-tree", tree, "-p", start, stdin=b"made\n")

    parcel = publish(scene.there, scene.exchange, made, base=start)
    bring(scene.here, scene.exchange, made, pin="refs/orch/r1/head")

    assert (parcel.base, parcel.size < 1_000) == (start, True)
    assert scene.here.tree_of(made) == tree
    assert "made there" in scene.here.diff(start, made).decode()


def test_publishing_and_bringing_again_changes_nothing(scene: Any) -> None:
    commit = scene.baseline("r1")
    publish_baseline(scene.here, scene.exchange, commit)
    files = {path: path.stat().st_mtime_ns for path in scene.shared.rglob("*")}
    bring(scene.there, scene.exchange, commit, pin=PIN)
    packs = sorted((scene.there.git_dir / "objects" / "pack").iterdir())

    publish_baseline(scene.here, scene.exchange, commit)
    publish(scene.there, scene.exchange, commit, base="")
    bring(scene.there, scene.exchange, commit, pin=PIN)

    assert {path: path.stat().st_mtime_ns for path in scene.shared.rglob("*")} == files
    assert sorted((scene.there.git_dir / "objects" / "pack").iterdir()) == packs


def test_baseline_older_than_the_last_one_needs_no_bundle(scene: Any, kit: ModuleType) -> None:
    old = kit.git(scene.repo, "rev-parse", "HEAD")
    (scene.repo / "a.txt").write_text("two\n")
    kit.commit_all(scene.repo)
    publish_baseline(scene.here, scene.exchange, scene.baseline("r1"))
    kit.git(scene.repo, "checkout", "-q", "--detach", old)
    assert scene.baseline("r2") == old

    parcel = publish_baseline(scene.here, scene.exchange, old)
    bring(scene.there, scene.exchange, old, pin=PIN)

    assert parcel.bundle == ""
    assert scene.there.resolve(old) == old


def test_damaged_bundle_is_told_and_never_taken_in(scene: Any) -> None:
    commit = scene.baseline("r1")
    publish_baseline(scene.here, scene.exchange, commit)
    (bundle,) = scene.shared.glob("*/bundles/*")
    bundle.write_bytes(bundle.read_bytes()[:-1] + b"x")

    with pytest.raises(HostFaultError, match="is damaged"):
        bring(scene.there, scene.exchange, commit, pin=PIN)

    assert scene.there.resolve(commit) is None


def test_bundle_of_something_else_is_refused_although_its_sum_is_right(scene: Any, kit: ModuleType) -> None:
    commit = scene.baseline("r1")
    parcel = publish_baseline(scene.here, scene.exchange, commit)
    forged = "1" * 40
    path = scene.shared / scene.exchange.key / "commits" / f"{forged}.json"
    path.write_text(Parcel.model_validate({**parcel.model_dump(), "commit": forged}).model_dump_json())

    with pytest.raises(HostFaultError, match="holds another commit"):
        bring(scene.there, scene.exchange, forged, pin=PIN)


def test_commit_that_nobody_published_is_waited_for(scene: Any) -> None:
    commit = scene.baseline("r1")

    assert not is_published(scene.exchange, commit)
    with pytest.raises(HostFaultError, match="is not in the artifact store"):
        bring(scene.there, scene.exchange, commit, pin=PIN)


def test_shallow_history_stays_shallow_elsewhere(scene: Any, kit: ModuleType, tmp_path: Path) -> None:
    (scene.repo / "a.txt").write_text("two\n")
    kit.commit_all(scene.repo)
    kit.git(tmp_path, "clone", "-q", "--depth=1", scene.repo.as_uri(), "shallow")
    here = Store.of(scene.here.home, inspect(tmp_path / "shallow"))
    commit = kit.git(tmp_path / "shallow", "rev-parse", "HEAD")
    from orch.activities.snapshots import take_baseline

    take_baseline(here, inspect(tmp_path / "shallow"), "r1")
    publish_baseline(here, scene.exchange, commit)

    bring(scene.there, scene.exchange, commit, pin=PIN)

    assert scene.there.git.text("rev-list", "--count", commit) == "1"
    assert scene.there.git.ok("fsck", "--strict")


def test_checkout_elsewhere_has_the_bytes_that_the_users_settings_say(
    scene: Any, kit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attributes = tmp_path / "my attributes"
    attributes.write_text("a.txt text eol=crlf\n")
    kit.git(scene.repo, "config", "core.attributesFile", str(attributes))
    (scene.repo / ".git" / "info").mkdir(exist_ok=True)
    (scene.repo / ".git" / "info" / "exclude").write_text("b\u00e4d.log\n", encoding="latin-1")
    Store.of(scene.here.home, inspect(scene.repo))
    commit = scene.baseline("r1")
    publish_baseline(scene.here, scene.exchange, commit)
    attributes.unlink()  # the other host has no such file
    ignore = Path(os.environ["XDG_CONFIG_HOME"]) / "git" / "ignore"
    ignore.parent.mkdir(parents=True)
    ignore.write_text("a.txt\n")  # and its own user has no say

    bring(scene.there, scene.exchange, commit, pin=PIN)
    refresh_settings(scene.there, scene.exchange, commit)

    tree = CloneProvider().open(scene.there, tmp_path / "workspace", commit)
    assert (tree / "a.txt").read_bytes() == b"one\r\n"
    assert not scene.there.git.with_env(GIT_WORK_TREE=tree).at(tree).ok("check-ignore", "--no-index", "a.txt")
    assert (scene.there.git_dir / "info" / "exclude").read_bytes() == b"b\xe4d.log\n"
