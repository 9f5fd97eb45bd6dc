"""Any way to keep a working tree is understood; what has none is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.repository import inspect
from orch.activities.store import store_key
from orch.workflows.errors import RefusedError


@pytest.fixture
def repo(tmp_path: Path, make_repo: Callable[..., Path]) -> Path:
    return make_repo(tmp_path / "repo", {"sub/a.txt": "a\n"})


def test_plain_repository_is_described(kit: Any, repo: Path) -> None:
    before = kit.fingerprint(repo)
    found = inspect(repo / "sub")
    assert (found.top, found.git_dir, found.common_dir) == (repo, repo / ".git", repo / ".git")
    assert found.head == kit.git(repo, "rev-parse", "HEAD")
    assert (found.branch, found.operation) == ("main", "")
    assert kit.fingerprint(repo) == before


def test_detached_and_unborn_heads_are_told_apart(kit: Any, repo: Path, tmp_path: Path) -> None:
    kit.git(repo, "checkout", "-q", "--detach")
    assert inspect(repo).branch == ""
    assert inspect(repo).head is not None
    unborn = inspect(kit.make_repo(tmp_path / "unborn", {}))
    assert (unborn.head, unborn.branch) == (None, "main")


@pytest.mark.parametrize("name", ["with space", "quo'te\"d", "100%", "new\nline", "col:on", "ünï"])
def test_any_path_and_any_link_to_it_mean_the_same(kit: Any, bench: Any, tmp_path: Path, name: str) -> None:
    repo = kit.make_repo(tmp_path / name / "repo", {"sub/a.txt": "a\n"})
    (tmp_path / "link").symlink_to(repo)
    kit.write(repo, {"new": "dirty\n"})
    found = inspect(tmp_path / "link" / "sub")
    assert found == inspect(repo)
    here = bench(tmp_path / "link" / "sub")
    assert here.store.key == store_key(inspect(repo))
    assert set(here.files(here.baseline().commit)) == {"new", "sub/a.txt"}
    assert (here.open() / "new").read_text() == "dirty\n"


def test_linked_worktrees_also_of_a_bare_repository(kit: Any, bench: Any, repo: Path, tmp_path: Path) -> None:
    kit.git(repo, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare"))
    for owner, folder in ((repo, "linked"), (tmp_path / "bare", "of-bare")):
        kit.git(owner, "worktree", "add", "-q", "--detach", str(tmp_path / folder))
        kit.write(tmp_path / folder, {"new": f"{folder}\n"})
        before = kit.fingerprint(tmp_path / folder)
        here = bench(tmp_path / folder)
        here.run = folder
        assert here.files(here.baseline().commit)["new"] == f"{folder}\n".encode()
        assert kit.fingerprint(tmp_path / folder) == before
    assert store_key(inspect(tmp_path / "linked")) == store_key(inspect(repo))


def test_git_directory_elsewhere_and_submodules(kit: Any, bench: Any, repo: Path, tmp_path: Path) -> None:
    kit.make_repo(tmp_path / "separate", {"f": "f\n"}, "--separate-git-dir", str(tmp_path / "dir.git"))
    kit.git(repo, "submodule", "--quiet", "add", str(tmp_path / "separate"), "mod")
    for top in (tmp_path / "separate", repo / "mod"):
        here = bench(top)
        here.run = top.name
        assert here.baseline().commit == kit.git(top, "rev-parse", "HEAD")
        assert (here.open() / "f").read_text() == "f\n"
    assert inspect(tmp_path / "separate").git_dir == tmp_path / "dir.git"


@pytest.mark.parametrize(
    ("file", "operation"),
    [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
        ("rebase-merge/x", "rebase"),
        ("rebase-apply/x", "rebase"),
    ],
)
def test_operation_in_progress_is_named(kit: Any, repo: Path, file: str, operation: str) -> None:
    kit.write(repo / ".git", {file: ""})
    assert inspect(repo).operation == operation


def test_what_has_no_working_tree_is_refused(kit: Any, repo: Path, tmp_path: Path) -> None:
    kit.git(repo, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare"))
    (tmp_path / "empty").mkdir()
    for path, reason in (
        (tmp_path / "bare", "is a bare repository"),
        (repo / ".git", "inside of a git directory"),
        (tmp_path / "empty", "not a git repository"),
        (repo / "sub" / "a.txt", "not a folder"),
        (tmp_path / "nowhere", "no such folder"),
    ):
        with pytest.raises(RefusedError, match=reason) as refusal:
            inspect(path)
        assert refusal.value.hint
        assert "\n" not in refusal.value.message


def test_vanished_current_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RefusedError, match="no such folder"):
        inspect(Path())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_foreign_repository_is_refused_and_no_setting_is_changed(kit: Any, repo: Path) -> None:
    before = kit.fingerprint(repo)
    for path in (repo, repo / ".git"):
        os.chown(path, 65534, 65534)
    with pytest.raises(RefusedError, match="belongs to another user") as refusal:
        inspect(repo)
    assert "safe.directory" in refusal.value.hint
    assert not Path(os.environ["HOME"], ".gitconfig").exists()
    for path in (repo, repo / ".git"):
        os.chown(path, 0, 0)
    assert kit.fingerprint(repo) == before


@pytest.mark.parametrize(("script", "reason"), [("", "git is not installed"), ("echo git version 2.20.1", "too old")])
def test_missing_and_old_git_are_refused(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    (tmp_path / "bin").mkdir()
    if script:
        (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / "git").chmod(0o755)
        (tmp_path / "bin" / "env").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(RefusedError, match=reason):
        inspect(repo)
