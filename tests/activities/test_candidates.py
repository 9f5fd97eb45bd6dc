"""What an attempt left is recorded byte for byte, whatever the agent did to git."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import store
from orch.activities.workspaces.registry import PROVIDERS
from orch.workflows.errors import RefusedError


@pytest.fixture
def here(tmp_path: Path, make_repo: Callable[..., Path], bench: Any) -> Any:
    files = {
        "a.txt": "one\n",
        "b.txt": "two\n",
        "dir/c.txt": "three\n",
        "run.sh": "#!/bin/sh\n",
        ".gitignore": "*.log\n",
    }
    tests = {"tests/test_a.py": "assert 1\n", "tests/deep/test_b.py": "assert 2\n", "conftest.py": "c\n"}
    return bench(make_repo(tmp_path / "repo", files | tests))


def test_candidate_is_what_the_agent_left(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.write(tree, {"a.txt": "changed\n", "new/bin": b"\0\xff\r\n", "x.log": "ignored\n", "empty": ""})
    (tree / "b.txt").unlink()
    shutil.rmtree(tree / "dir")
    (tree / "dir").write_text("now a file")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("/nowhere")
    snapshot = here.snapshot()
    again = here.open(2, snapshot.commit)
    (tree / "x.log").unlink()
    assert _listing(again) == _listing(tree)
    assert snapshot.changed == 8
    assert snapshot.paths == ("a.txt", "b.txt", "dir", "dir/c.txt", "empty", "link", "new/bin", "run.sh")
    assert here.store.git.text("log", "-1", "--format=%P", snapshot.commit) == here.baseline().commit
    assert here.sound()


def test_unchanged_candidate_is_the_baseline(here: Any) -> None:
    tree = here.open()
    os.utime(tree / "a.txt", (5, 5))
    (tree / "dir" / "c.txt").write_text("three\n")
    snapshot, baseline = here.snapshot(), here.baseline()
    assert (snapshot.changed, snapshot.commit, snapshot.tree) == (0, baseline.commit, baseline.tree)


def test_candidate_is_taken_once(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.write(tree, {"a.txt": "first\n", "tests/test_a.py": "weakened\n"})
    first = here.snapshot(protected=["tests/**"])
    kit.write(tree, {"a.txt": "second\n"})
    assert here.snapshot(protected=["tests/**"]) == first
    here.close()
    assert here.snapshot(protected=["tests/**"]) == first
    assert first.restored == ("tests/test_a.py",)
    assert here.store.resolve("refs/orch/run/i1-c1-b1") == first.commit


def test_what_the_agent_did_to_its_git_does_not_matter(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.write(tree, {"a.txt": "kept\n", "b.txt": "hidden\n", "dir/c.txt": "hidden\n", "forced.log": "ignored\n"})
    kit.git(tree, "add", "-f", "forced.log")
    kit.git(tree, "commit", "-q", "-a", "-m", "the agent's")
    kit.write(tree, {"b.txt": "later\n", "dir/c.txt": "later\n"})
    kit.git(tree, "update-index", "--skip-worktree", "b.txt")
    kit.git(tree, "update-index", "--assume-unchanged", "dir/c.txt")
    files = here.files(here.snapshot().commit)
    assert (files["a.txt"], files["b.txt"], files["dir/c.txt"]) == (b"kept\n", b"later\n", b"later\n")
    assert "forced.log" not in files


@pytest.mark.parametrize("damage", ["gone", "folder", "elsewhere", "index", "config"])
def test_damaged_git_loses_nothing(kit: Any, here: Any, tmp_path: Path, damage: str) -> None:
    tree, pointer = here.open(), here.folder() / "tree" / ".git"
    other = kit.make_repo(tmp_path / "other")
    before = kit.fingerprint(other)
    admin = here.provider.writable(here.store, here.folder())[0]
    if damage == "index":
        (admin / "index").write_bytes(b"garbage")
    elif damage == "config":
        (admin / "config.worktree").write_text("garbage [")
    else:
        pointer.unlink()
    if damage == "folder":
        kit.git(tree, "init", "-q")
    elif damage == "elsewhere":
        pointer.write_text(f"gitdir: {other}/.git\n")
    kit.write(tree, {"a.txt": "kept\n", "new": "n"})
    assert here.snapshot().paths == ("a.txt", "new")
    here.close()
    assert not tree.exists()
    assert kit.fingerprint(other) == before


def test_same_size_edit_right_after_the_checkout_is_seen(here: Any) -> None:
    for turn in range(1, 6):
        tree = here.open(turn)
        path = tree / "a.txt"
        before = path.stat()
        with path.open("r+") as file:
            file.write("two")
        if turn > 3:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert here.snapshot(turn).paths == ("a.txt",)


def test_protected_paths_get_their_baseline_back(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.write(
        tree, {"tests/test_a.py": "weak\n", "tests/new.py": "n\n", "tests/x\ny/conftest.py": "n\n", "a.txt": "fix\n"}
    )
    (tree / "tests" / "deep" / "test_b.py").unlink()
    snapshot = here.snapshot(protected=["tests/**", "conftest.py"])
    assert snapshot.paths == ("a.txt",)
    assert snapshot.restored == (
        "tests/deep/test_b.py",
        "tests/new.py",
        "tests/test_a.py",
        "tests/x\\ny/conftest.py",
    )


def test_protected_paths_come_back_where_files_and_folders_changed_places(kit: Any, here: Any) -> None:
    tree = here.open()
    shutil.rmtree(tree / "tests")
    (tree / "tests").symlink_to("/elsewhere")
    (tree / "conftest.py").unlink()
    kit.write(tree, {"conftest.py/inner.py": "i\n", "sub/conftest.py": "new\n"})
    snapshot = here.snapshot(protected=["tests/**", "conftest.py"])
    assert snapshot.changed == 0
    assert snapshot.commit == here.baseline().commit
    assert set(snapshot.restored) >= {"conftest.py", "conftest.py/inner.py", "tests/test_a.py", "sub/conftest.py"}


def test_negated_globs_are_not_protected(kit: Any, here: Any) -> None:
    kit.write(here.open(), {"tests/test_a.py": "x\n", "tests/deep/test_b.py": "x\n"})
    assert here.snapshot(protected=["/tests/**", "!/tests/deep/**"]).paths == ("tests/deep/test_b.py",)


def test_repositories_the_agent_made_are_ordinary_files(kit: Any, here: Any) -> None:
    tree = here.open()
    kit.make_repo(tree / "inner", {"f": "x\n"})
    kit.make_repo(tree / "inner" / "deeper", {"g": "y\n"})
    kit.make_repo(tree / "dir" / "unborn", {})
    kit.write(tree, {"dir/unborn/h": "z\n"})
    kit.git(tree / "tests", "init", "-q")
    kit.write(tree, {"tests/new.py": "n\n"})
    snapshot = here.snapshot()
    assert snapshot.paths == ("dir/unborn/h", "inner/deeper/g", "inner/f", "tests/new.py")
    assert len(snapshot.warnings) == 3
    assert "160000" not in here.store.git.text("ls-tree", "-r", snapshot.commit)


def test_pipe_over_a_tracked_file_is_a_deletion_with_a_warning(here: Any) -> None:
    tree = here.open()
    (tree / "a.txt").unlink()
    os.mkfifo(tree / "a.txt")
    os.mkfifo(tree / "pipe")
    snapshot = here.snapshot()
    assert snapshot.paths == ("a.txt",)
    assert snapshot.warnings == ("a.txt is no file any more: recorded as deleted",)


def test_new_attributes_leave_untouched_files_as_they_were(kit: Any, tmp_path: Path, bench: Any) -> None:
    repo = kit.make_repo(tmp_path / "repo", {"a.txt": b"1\r\n2\r\n", "b.txt": b"1\r\n2\r\n", "c.txt": b"1\r\n"})
    here = bench(repo)
    tree = here.open()
    (tree / "a.txt").write_bytes(b"1\r\nchanged\r\n")
    os.utime(tree / "c.txt")
    kit.write(tree, {".gitattributes": "*.txt text eol=lf\n"})
    snapshot = here.snapshot()
    files = here.files(snapshot.commit)
    assert files["b.txt"] == b"1\r\n2\r\n"
    assert files["a.txt"] == b"1\nchanged\n"
    assert "b.txt" not in snapshot.paths


def test_carried_files_are_not_recorded_but_tracked_ones_are(kit: Any, here: Any) -> None:
    kit.write(here.repo, {"vendor/tracked.py": "t\n"})
    tree = here.open()
    kit.write(
        tree, {"vendor/tracked.py": "edited\n", "vendor/installed.py": "i\n", ".env": "SECRET\n", "sub/.env": "S\n"}
    )
    kit.make_repo(tree / "vendor" / "cloned")
    snapshot = here.snapshot(carried=["vendor", ".env"])
    assert snapshot.paths == ("vendor/tracked.py",)
    assert b"SECRET\n" not in here.files(snapshot.commit).values()


def test_executable_bit_arrives_though_the_user_ignores_it(kit: Any, here: Any) -> None:
    kit.git(here.repo, "config", "core.fileMode", "false")
    tree = here.open()
    (tree / "run.sh").chmod(0o755)
    (tree / "secret").write_text("s")
    (tree / "secret").chmod(0o600)
    snapshot = here.snapshot()
    assert snapshot.paths == ("run.sh", "secret")
    assert here.store.git.text("ls-tree", snapshot.commit, "run.sh").startswith("100755")


def test_moved_submodule_is_put_back_with_a_warning(kit: Any, here: Any, tmp_path: Path) -> None:
    lib = kit.make_repo(tmp_path / "lib")
    kit.git(here.repo, "submodule", "--quiet", "add", str(lib), "sub")
    kit.commit_all(here.repo)
    tree = here.open()
    kit.git(tree, "submodule", "--quiet", "update", "--init")
    kit.write(tree, {"sub/a.txt": "moved\n"})
    kit.commit_all(tree / "sub")
    snapshot = here.snapshot()
    assert snapshot.changed == 0
    assert snapshot.warnings == ("changes inside the submodule sub are not recorded",)
    here.close()
    assert not tree.exists()
    assert list((here.store.git_dir / "worktrees").iterdir()) == []


def test_lost_pristine_index_costs_only_time(kit: Any, here: Any) -> None:
    kit.write(here.open(), {"a.txt": "x\n"})
    (here.folder() / "index").unlink()
    assert here.snapshot().paths == ("a.txt",)


@pytest.mark.parametrize("put", ["nothing", "link"])
def test_workspace_that_is_gone_is_refused(here: Any, tmp_path: Path, put: str) -> None:
    tree = here.open()
    shutil.rmtree(tree)
    if put == "link":
        tree.symlink_to(tmp_path)
    with pytest.raises(RefusedError, match="the workspace is gone"):
        here.snapshot()


def test_taking_two_at_once_gives_one_result(kit: Any, here: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    kit.write(here.open(), {"a.txt": "x\n"})
    here.baseline()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: here.snapshot(), range(4)))
    assert len(set(found)) == 1


def test_diff_can_be_applied(kit: Any, here: Any, tmp_path: Path) -> None:
    kit.write(here.open(), {"bin": bytes(range(256)), "ü \n.txt": "x\n", "a.txt": "two\n"})
    snapshot = here.snapshot()
    patch = here.store.diff(here.baseline().commit, snapshot.commit)
    subprocess.run(["git", "apply", "--index"], cwd=here.repo, input=patch, check=True)
    assert kit.git(here.repo, "write-tree") == snapshot.tree


def test_long_lists_are_cut(kit: Any, here: Any) -> None:
    kit.write(here.open(), {f"tests/{n:03}.py": "x" for n in range(50)} | {f"new/{n:03}.py": "x" for n in range(50)})
    snapshot = here.snapshot(protected=["tests/**"])
    assert (snapshot.changed, len(snapshot.paths)) == (50, 20)
    assert len(snapshot.restored) == 21
    assert snapshot.restored[-1] == "and 30 more"


def test_agent_commits_without_identity_or_key(kit: Any, here: Any) -> None:
    kit.git(here.repo, "config", "--global", "commit.gpgsign", "true")
    kit.git(here.repo, "config", "--global", "gpg.program", "/bin/false")
    tree = here.open()
    kit.write(tree, {"a.txt": "x\n"})
    subprocess.run(["git", "commit", "-q", "-a", "-m", "mine"], cwd=tree, check=True)
    assert kit.git(tree, "log", "-1", "--format=%an") == "orch"


def _listing(tree: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file below a folder, its `.git` aside: mode and content."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in tree.rglob("*"):
        if path.is_symlink():
            found[str(path.relative_to(tree))] = (0, str(path.readlink()))
        elif path.is_file() and path != tree / ".git":
            found[str(path.relative_to(tree))] = (path.stat().st_mode, path.read_bytes())
    return found


@pytest.mark.parametrize("rules", [".gitignore", ".gitattributes"])
@pytest.mark.parametrize("provider", ["overlay", "clone", "worktree"])
def test_rules_that_keep_git_busy_for_ever_are_a_reason_to_refuse(
    here: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, provider: str, rules: str
) -> None:
    here.provider = PROVIDERS[provider]
    monkeypatch.setattr(store, "FOREIGN_S", 1)
    here.open()
    kit.write(here.provider.written(here.folder()), {rules: f"/a{'/**/a' * 22}/**/[b] text\n", "a/" * 45 + "a": "deep"})
    with pytest.raises(RefusedError, match="the workspace cannot be recorded: git ended with status 124"):
        here.snapshot()
