from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.workspaces.clone import CloneProvider


@pytest.fixture
def here(bench: Callable[[Path], Any], make_repo: Callable[..., Path], tmp_path: Path) -> Any:
    """A bench over a repository with a few files."""
    return bench(make_repo(tmp_path / "repo", {"a.txt": "a\n", "sub/run.sh": "echo\n"}))


def test_git_works_inside_and_reaches_nothing_outside(kit: Any, here: Any) -> None:
    commit = here.baseline().commit
    first, second = (CloneProvider().open(here.store, here.folder(n), commit) for n in (1, 2))
    refs = here.store.git.run("for-each-ref")

    kit.write(first, {"a.txt": "changed\n"})
    kit.git(first, "stash")
    kit.git(first, "checkout", "-q", "-b", "mine")
    kit.git(first, "config", "core.hooksPath", "/nowhere")
    kit.git(first, "reflog", "expire", "--all", "--expire=now")
    kit.git(first, "gc", "-q", "--prune=now")

    assert kit.git(first, "status", "--porcelain") == ""
    assert kit.git(second, "log", "--format=%H", "-1") == commit
    assert kit.git(second, "for-each-ref") == ""
    assert here.store.git.run("for-each-ref") == refs
    assert here.sound()


def test_closing_leaves_nothing_and_may_be_repeated(here: Any) -> None:
    provider, folder = CloneProvider(), here.folder()
    provider.open(here.store, folder, here.baseline().commit)

    provider.close(here.store, folder)
    provider.close(here.store, folder)

    assert list(folder.iterdir()) == []


def test_sandbox_may_write_its_own_git_directory_and_nothing_of_the_store(here: Any) -> None:
    assert CloneProvider().writable(here.store, here.folder()) == (here.folder() / "git",)


@pytest.mark.parametrize("kind", ["sha256", "shallow"])
def test_odd_repositories_can_be_cloned(
    kind: str, kit: Any, make_repo: Callable[..., Path], bench: Callable[[Path], Any], tmp_path: Path
) -> None:
    repo = make_repo(tmp_path / "repo", None, *(["--object-format=sha256"] if kind == "sha256" else []))
    if kind == "shallow":
        kit.git(repo, "commit", "-q", "--allow-empty", "-m", "second")
        kit.git(tmp_path, "clone", "-q", "--depth", "1", repo.as_uri(), "clone")
        repo = tmp_path / "clone"
    here = bench(repo)

    tree = CloneProvider().open(here.store, here.folder(), here.baseline().commit)

    assert kit.git(tree, "status", "--porcelain") == ""
    assert kit.git(tree, "log", "--format=%H") == kit.git(repo, "log", "--format=%H")
