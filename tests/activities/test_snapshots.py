"""The baseline: exactly what the user sees, and nothing of theirs is touched."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.snapshots import made_by_setup, take_baseline, take_candidate
from orch.workflows.errors import RefusedError
from orch.workflows.model.contract import Contract, Rung

CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))

ODD_NAMES = [
    "café.md",
    "日本.txt",
    "a b/c b/d.txt",
    "tab\tx",
    '"q".txt',
    "-n",
    ":(glob)x",
    "new\nline",
    "back\\slash",
    "[a]*",
]


@pytest.fixture
def repo(tmp_path: Path, make_repo: Callable[..., Path]) -> Path:
    files = {
        "a.txt": "one\n",
        "b.txt": "two\n",
        "dir/c.txt": "three\n",
        "run.sh": "#!/bin/sh\n",
        ".gitignore": "*.log\n",
    }
    return make_repo(tmp_path / "repo", files)


def test_baseline_is_what_the_user_sees(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.write(repo, {"a.txt": "dirty\n", "staged.txt": "staged\n", "new/file.txt": "untracked\n", "x.log": "ignored\n"})
    kit.git(repo, "add", "staged.txt")
    (repo / "b.txt").unlink()
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("a.txt")
    untouched()
    baseline = bench(repo).baseline()
    files = bench(repo).files(baseline.commit)
    assert set(files) == {".gitignore", "a.txt", "dir/c.txt", "link", "new/file.txt", "run.sh", "staged.txt"}
    assert files["a.txt"] == b"dirty\n"
    assert files["link"] == b"a.txt"
    assert "100755" in bench(repo).store.git.text("ls-tree", baseline.commit, "run.sh")
    assert baseline.dirty
    assert baseline.parent == kit.git(repo, "rev-parse", "HEAD")


def test_clean_tree_is_the_commit_itself(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    os.utime(repo / "a.txt", (1, 1))
    untouched()
    baseline = bench(repo).baseline()
    assert baseline.commit == baseline.parent == kit.git(repo, "rev-parse", "HEAD")
    assert not baseline.dirty
    assert bench(repo).sound()


def test_baseline_is_taken_once_per_run(kit: Any, repo: Path, bench: Any) -> None:
    first = bench(repo).baseline()
    kit.write(repo, {"a.txt": "later\n"})
    kit.commit_all(repo)
    assert bench(repo).baseline() == first
    later = bench(repo)
    later.run = "other"
    assert later.baseline().commit == kit.git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize("files", [{}, {"f": "x\n"}])
def test_unborn_branch_has_a_baseline_without_parent(
    kit: Any, tmp_path: Path, bench: Any, files: dict[str, str]
) -> None:
    repo = kit.make_repo(tmp_path / "unborn", {})
    kit.write(repo, files)
    before = kit.fingerprint(repo)
    baseline = bench(repo).baseline()
    assert baseline.parent is None
    assert baseline.dirty
    assert set(bench(repo).files(baseline.commit)) == set(files)
    assert (bench(repo).open() / ".git").is_file()
    assert kit.fingerprint(repo) == before


def test_nested_repositories_are_left_out(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.make_repo(repo / "born")
    kit.make_repo(repo / "dir" / "unborn", {})
    kit.write(repo, {"dir/unborn/file": "x", "dir/kept": "k"})
    kit.git(repo, "worktree", "add", "-q", "--detach", ".trees/w")
    untouched()
    files = bench(repo).files(bench(repo).baseline().commit)
    assert set(files) == {".gitignore", "a.txt", "b.txt", "dir/c.txt", "dir/kept", "run.sh"}


def test_pipe_or_socket_over_a_tracked_file_is_a_deletion(repo: Path, bench: Any, untouched: Any) -> None:
    (repo / "a.txt").unlink()
    os.mkfifo(repo / "a.txt")
    os.mkfifo(repo / "untracked")
    (repo / "b.txt").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(repo)
        server.bind("b.txt")
        os.chdir(here)
        untouched()
        assert set(bench(repo).files(bench(repo).baseline().commit)) == {".gitignore", "dir/c.txt", "run.sh"}


def test_flagged_entries_count_as_the_user_flagged_them(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.write(repo, {"a.txt": "hidden\n", "b.txt": "hidden\n", "promised": "later\n"})
    kit.git(repo, "update-index", "--skip-worktree", "a.txt")
    kit.git(repo, "update-index", "--assume-unchanged", "b.txt")
    kit.git(repo, "add", "--intent-to-add", "promised")
    kit.write(repo, {"gone": "x"})
    kit.git(repo, "add", "--intent-to-add", "gone")
    (repo / "gone").unlink()
    untouched()
    files = bench(repo).files(bench(repo).baseline().commit)
    assert (files["a.txt"], files["b.txt"], files["promised"]) == (b"one\n", b"two\n", b"later\n")
    assert "gone" not in files


def test_sparse_checkout_keeps_what_is_not_on_disk(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt", "/.gitignore")
    kit.write(repo, {"outside/new.txt": "n\n"})
    untouched()
    files = bench(repo).files(bench(repo).baseline().commit)
    assert set(files) == {".gitignore", "a.txt", "b.txt", "dir/c.txt", "outside/new.txt", "run.sh"}
    assert (bench(repo).open() / "dir" / "c.txt").read_text() == "three\n"


def test_sparse_and_split_indexes_are_read(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.git(repo, "update-index", "--split-index")
    kit.write(repo, {"a.txt": "dirty\n"})
    untouched()
    assert bench(repo).files(bench(repo).baseline().commit)["a.txt"] == b"dirty\n"


def test_unfinished_merge_and_foreign_lock_do_not_matter(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.git(repo, "checkout", "-q", "-b", "side")
    kit.write(repo, {"a.txt": "side\n"})
    kit.commit_all(repo)
    kit.git(repo, "checkout", "-q", "main")
    kit.write(repo, {"a.txt": "main\n"})
    kit.commit_all(repo)
    with pytest.raises(AssertionError):
        kit.git(repo, "merge", "side")
    (repo / ".git" / "index.lock").touch()
    untouched()
    assert bench(repo).repository.operation == "merge"
    assert b"<<<<<<<" in bench(repo).files(bench(repo).baseline().commit)["a.txt"]


def test_same_size_edit_right_after_a_commit_is_seen(kit: Any, repo: Path, bench: Any) -> None:
    for turn in range(4):
        kit.write(repo, {"a.txt": f"{turn:03}\n"})
        kit.commit_all(repo, str(turn))
        kit.write(repo, {"a.txt": f"{turn + 500:03}\n"})
        here = bench(repo)
        here.run = f"run{turn}"
        assert here.files(here.baseline().commit)["a.txt"] == f"{turn + 500:03}\n".encode()


def test_odd_names_are_kept(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    names = [*ODD_NAMES, os.fsdecode(b"latin-\xe9")]
    kit.write(repo, dict.fromkeys(names, "x"))
    untouched()
    here = bench(repo)
    assert set(names) <= set(here.files(here.baseline().commit))
    tree = here.open()
    assert all((tree / name).read_text() == "x" for name in names)
    for name in names:
        (tree / name).write_text("y")
    snapshot = here.snapshot()
    changed = here.store.changed(here.baseline().commit, snapshot.commit)
    assert {os.fsdecode(name) for name in changed} == set(names)
    assert all(path.isprintable() for path in snapshot.paths)


def test_store_needs_nothing_of_the_users(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    here = bench(repo)
    store = here.store
    kit.write(repo, {"staged": "only in the index\n", "hidden": "skipped\n", "late": "committed\n"})
    kit.git(repo, "add", "late")
    kit.git(repo, "commit", "-q", "-m", "after the store was made")
    kit.git(repo, "add", "-A")
    kit.git(repo, "update-index", "--skip-worktree", "hidden")
    (repo / "hidden").unlink()
    commit = here.baseline().commit
    shutil.move(repo, tmp_path / "away")
    assert not store.git.attempt("fsck", "--full", "--strict")[0]
    assert store.git.run("cat-file", "blob", f"{commit}:hidden") == b"skipped\n"
    assert len(store.git.text("rev-list", commit).split()) == 3


def test_unreadable_object_refuses_with_a_reason(kit: Any, repo: Path, bench: Any) -> None:
    kit.write(repo, {"staged": "will be lost\n"})
    kit.git(repo, "add", "-A")
    kit.git(repo, "update-index", "--skip-worktree", "staged")
    blob = kit.git(repo, "rev-parse", ":staged")
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(RefusedError, match=blob):
        bench(repo).baseline()


def test_what_setup_changed_is_told_and_nobodys_change_whatever_kind_of_path(kit: Any, repo: Path, bench: Any) -> None:
    files = {"edited": "1", "gone": "1", "mode": "1", "file": "1", "folder/inside": "1", "link": "1", "agent": "1"}
    kit.write(repo, files)
    kit.commit_all(repo)
    here = bench(repo)
    tree, commit = here.open(), here.baseline().commit
    kit.write(tree, {"edited": "2", "new/file": "2", "agent": "2"})
    (tree / "gone").unlink()
    (tree / "mode").chmod(0o755)
    (tree / "file").unlink()
    kit.write(tree, {"file/now": "a folder"})
    shutil.rmtree(tree / "folder")
    (tree / "folder").write_text("a file now")
    (tree / "link").unlink()
    (tree / "link").symlink_to("elsewhere")
    facts: Any = {"commit": commit, "index": here.folder() / "index", "carried": ()}
    made = made_by_setup(here.store, tree, **facts)
    kit.write(tree, {"agent": "3"})

    snapshot = take_candidate(here.store, tree, attempt=here.key(), contract=CONTRACT, made=made, **facts)

    assert snapshot.paths == ("agent",)
    assert here.files(snapshot.commit) == {**here.files(commit), "agent": b"3"}
    assert set(snapshot.setup_changed) == set(files)


def test_carried_files_that_nobody_ignores_are_in_no_baseline(kit: Any, repo: Path, bench: Any) -> None:
    kit.write(repo, {".env": "SECRET", "deps/tool": "t", "deps/tracked": "1"})
    kit.git(repo, "add", "deps/tracked")

    here = bench(repo)
    baseline = take_baseline(here.store, here.repository, "run", carried=[".env", "deps"])

    assert set(here.files(baseline.commit)) >= {"deps/tracked"}
    assert not {".env", "deps/tool"} & set(here.files(baseline.commit))
