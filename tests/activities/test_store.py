"""The store: complete without the user's repository, and theirs stays as it is."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.git import Git
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.store import Store, store_key
from orch.workflows.errors import RefusedError

MAKE = """
import sys; from pathlib import Path
from orch.activities.git import Git
from orch.activities.home import Home; from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline; from orch.activities.store import Store
repository = inspect(Path(sys.argv[1])); store = Store.of(Home(Path(sys.argv[2])), repository)
print(take_baseline(store, repository, sys.argv[3]).commit)
"""


@pytest.fixture
def repo(tmp_path: Path, make_repo: Callable[..., Path]) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "one\n", "dir/b.txt": "two\n"})


def test_store_has_nothing_of_the_users_but_objects(kit: Any, repo: Path, home: Home) -> None:
    kit.git(repo, "tag", "v1")
    kit.git(repo, "gc", "-q")
    kit.write(repo, {"c.txt": "three\n"})
    kit.commit_all(repo)
    before = kit.fingerprint(repo)
    store = Store.of(home, inspect(repo))
    assert store.git.text("for-each-ref", "refs/heads", "refs/tags", "refs/remotes") == ""
    assert store.git.text("remote") == ""
    assert store.git.text("config", "gc.auto") == "0"
    assert store.key.startswith("repo-")
    assert kit.fingerprint(repo) == before
    assert not store.git.attempt("fsck", "--full", "--strict")[0]


def test_shared_files_are_out_of_reach_of_those_who_write_objects(kit: Any, repo: Path, bench: Any) -> None:
    kit.git(repo, "gc", "-q")
    kit.write(repo, {"c.txt": "three\n"})
    kit.commit_all(repo)
    here = bench(repo)
    here.open()
    linked = [path for path in (here.store.path / "linked").rglob("*") if path.is_file()]
    assert {path.stat().st_nlink for path in linked} == {2}
    for place in here.provider.writable(here.store, here.folder()):
        assert {path.stat().st_nlink for path in place.rglob("*") if path.is_file()} <= {1}


def test_store_made_before_runs_wrote_apart_goes_on(kit: Any, repo: Path, home: Home) -> None:
    store = Store.of(home, inspect(repo))
    shutil.rmtree(store.apart)
    (store.git_dir / "objects/info/alternates").write_text("../../linked\n")
    before = store.git.text("hash-object", "-w", "--stdin", stdin=b"before")

    Store.of(home, inspect(repo))
    Store.of(home, inspect(repo))
    after = store.git.text("hash-object", "-w", "--stdin", stdin=b"after")

    assert (store.apart / after[:2] / after[2:]).exists()
    for git in (store.git, store.sharing):
        assert (
            git.text("cat-file", "--batch-check", stdin=f"{before}\n{after}\n{inspect(repo).head}\n".encode()).count(
                "missing"
            )
            == 0
        )
    assert (store.git_dir / "objects/info/alternates").read_text() == "../../linked\napart\n"


def test_key_is_readable_and_stable(kit: Any, repo: Path, tmp_path: Path) -> None:
    assert store_key(inspect(repo)) == store_key(inspect(repo / "dir"))
    odd = kit.make_repo(tmp_path / "Ödd Näme (2)")
    assert store_key(inspect(odd)).startswith("dd-n-me-2-")
    assert store_key(inspect(odd)) != store_key(inspect(repo))


def test_later_commits_arrive(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    here = bench(repo)
    assert here.baseline()
    for branch in ("one", "two"):
        kit.git(repo, "checkout", "-q", "-b", branch, "main")
        kit.write(repo, {f"{branch}.txt": "new\n"})
        kit.commit_all(repo)
        here.run = branch
        assert here.baseline().commit == kit.git(repo, "rev-parse", "HEAD")
    shutil.move(repo, tmp_path / "away")
    assert here.sound()


def test_shallow_clone_works(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    for turn in range(3):
        kit.write(repo, {"a.txt": f"{turn}\n"})
        kit.commit_all(repo)
    kit.git(tmp_path, "clone", "-q", "--depth", "2", f"file://{repo}", "shallow")
    here = bench(tmp_path / "shallow")
    kit.write(tmp_path / "shallow", {"a.txt": "dirty\n"})
    before = kit.fingerprint(tmp_path / "shallow")
    commit = here.baseline().commit
    assert kit.fingerprint(tmp_path / "shallow") == before
    kit.git(tmp_path / "shallow", "fetch", "-q", "--unshallow")
    kit.commit_all(tmp_path / "shallow")
    here.run = "later"
    assert here.baseline()
    shutil.move(tmp_path / "shallow", tmp_path / "away")
    assert len(here.store.git.text("rev-list", commit).split()) == 3
    assert here.sound()
    assert kit.git(here.open(commit=commit), "status", "--short") == ""


def test_partial_clone_works_when_its_files_are_here(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    kit.write(repo, {"a.txt": "two\n"})
    kit.commit_all(repo)
    kit.git(repo, "config", "uploadpack.allowFilter", "true")
    kit.git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{repo}", "partial")
    before = kit.fingerprint(tmp_path / "partial")
    here = bench(tmp_path / "partial")
    commit = here.baseline().commit
    assert kit.fingerprint(tmp_path / "partial") == before
    shutil.move(tmp_path / "partial", tmp_path / "away")
    assert here.files(commit)["a.txt"] == b"two\n"
    assert here.sound()


def test_partial_clone_that_lacks_files_of_its_head_is_refused(
    kit: Any, repo: Path, bench: Any, tmp_path: Path
) -> None:
    kit.git(repo, "config", "uploadpack.allowFilter", "true")
    kit.git(tmp_path, "clone", "-q", "--filter=blob:none", "--sparse", f"file://{repo}", "partial")
    with pytest.raises(RefusedError, match="objects of the repository cannot be read") as refusal:
        bench(tmp_path / "partial").baseline()
    assert "fetch" in refusal.value.hint


def test_borrowed_objects_are_brought_in(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    kit.git(tmp_path, "clone", "-q", "--shared", str(repo), "borrower")
    here = bench(tmp_path / "borrower")
    commit = here.baseline().commit
    shutil.move(repo, tmp_path / "away")
    assert here.files(commit)["a.txt"] == b"one\n"
    assert here.sound()


def test_sha256_repositories_work(kit: Any, bench: Any, tmp_path: Path) -> None:
    repo = kit.make_repo(tmp_path / "new", None, "--object-format=sha256")
    kit.write(repo, {"b": "b\n"})
    here = bench(repo)
    kit.write(here.open(), {"c": "c\n"})
    snapshot = here.snapshot()
    assert len(snapshot.commit) == 64
    assert snapshot.paths == ("c",)


def test_content_settings_follow_the_user(kit: Any, repo: Path, bench: Any) -> None:
    kit.write(repo / ".git" / "info", {"exclude": "*.tmp\n", "attributes": "*.raw -text\n"})
    kit.git(repo, "config", "core.autocrlf", "input")
    kit.git(repo, "config", 'filter.odd "name".clean', "tr 'a' \"b\\\\c\"\t# x")
    git = bench(repo).store.git
    assert git.text("config", "core.autocrlf") == "input"
    assert git.text("config", 'filter.odd "name".clean') == "tr 'a' \"b\\\\c\"\t# x"
    kit.git(repo, "config", "core.autocrlf", "false")
    kit.git(repo, "config", "user.name", "Not content")
    assert bench(repo).store.git.text("config", "core.autocrlf") == "false"
    assert git.text("config", "user.name") == "orch"
    tree = bench(repo).open()
    kit.write(tree, {"x.tmp": "ignored", "x.raw": "r"})
    assert bench(repo).snapshot().paths == ("x.raw",)


def test_processes_that_come_together_make_one_store(kit: Any, repo: Path, home: Home) -> None:
    kit.write(repo, {"new": "dirty\n"})
    runs = [
        subprocess.Popen([sys.executable, "-c", MAKE, repo, home.root, f"run{n // 2}"], stdout=subprocess.PIPE)
        for n in range(4)
    ]
    commits = [process.communicate()[0] for process in runs]
    assert [process.returncode for process in runs] == [0] * 4
    assert commits[0] == commits[1]
    assert commits[2] == commits[3]
    store = Store.of(home, inspect(repo))
    assert sorted(path.name for path in store.path.iterdir()) == ["linked", "lock", "store.git", "used"]


def test_interrupted_making_is_begun_again(kit: Any, repo: Path, home: Home) -> None:
    store = Store(home, store_key(inspect(repo)))
    kit.write(store.path, {"store.git.new/HEAD": "torn", "linked/pack/pack-1.pack": "torn"})
    assert Store.of(home, inspect(repo)).git.ok("fsck", "--full")


def test_state_directory_inside_the_repository_is_refused(repo: Path) -> None:
    with pytest.raises(RefusedError, match="inside the repository"):
        Store.of(Home(repo / ".orch"), inspect(repo))


def test_runs_are_dropped_one_by_one(repo: Path, home: Home, kit: Any) -> None:
    store, head = Store.of(home, inspect(repo)), kit.git(repo, "rev-parse", "HEAD")
    for ref in ("refs/orch/a/baseline", "refs/orch/a/i1-c1-b1", "refs/orch/ab/baseline"):
        store.pin(ref, head)
    store.drop_run("a")
    store.drop_run("a")
    assert store.resolve("refs/orch/a/baseline") is None
    assert store.resolve("refs/orch/ab/baseline") == head
    assert store.tree_of(head) == kit.git(repo, "rev-parse", "HEAD^{tree}")


def test_lock_excludes_others(repo: Path, home: Home) -> None:
    store = Store.of(home, inspect(repo))
    with store.lock(), (store.path / "lock").open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (store.path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_outer_git_variables_mean_nothing(kit: Any, repo: Path, bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    other = kit.make_repo(tmp_path / "other", {"other.txt": "o\n"})
    head = kit.git(repo, "rev-parse", "HEAD")
    before = kit.fingerprint(other)
    with monkeypatch.context() as outer:
        outer.setenv("GIT_DIR", str(other / ".git"))
        outer.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
        outer.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
        outer.setenv("GIT_NAMESPACE", "x")
        assert bench(repo).baseline().commit == head
        assert os.environ["GIT_NAMESPACE"] == "x"
    assert kit.fingerprint(other) == before


def test_settings_of_the_user_are_read_where_their_git_reads_them(
    kit: Any, repo: Path, bench: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "mine").write_text("[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "mine"))
    kit.write(repo, {"new.txt": "a line\n"})
    here = bench(repo)
    here.baseline()
    assert (here.open() / "new.txt").read_bytes() == b"a line\r\n"


def test_variables_that_say_nothing_of_repositories_stay(repo: Path, monkeypatch: Any) -> None:
    """Certificates of a company's proxy reach git's fetches."""
    monkeypatch.setenv("GIT_SSL_CAINFO", "/etc/company.pem")
    monkeypatch.setenv("GIT_NAMESPACE", "x")
    assert Git(repo).text("-c", "alias.said=!echo $GIT_SSL_CAINFO-$GIT_NAMESPACE", "said") == "/etc/company.pem-"
