"""A checkout and its index are of one second: what may be trusted then, and what must be read again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities.git import Git
from orch.activities.recording import record_tree, trust_times


@pytest.fixture
def checkout(make_repo: Callable[..., Path], tmp_path: Path) -> Git:
    """A fresh working tree of two files, with a private copy of its index, its time kept."""
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", "sub/b.txt": "two\n"})
    private = tmp_path / "index"
    shutil.copy2(repo / ".git" / "index", private)
    return Git(repo, {"GIT_INDEX_FILE": str(private)})


def index_of(git: Git) -> Path:
    return Path(git.env["GIT_INDEX_FILE"])


def recorded(git: Git, name: str) -> bytes:
    trust_times(git)
    record_tree(git)
    return git.run("cat-file", "blob", f":{name}")


def test_an_untouched_tree_is_not_read_again(checkout: Git) -> None:
    trust_times(checkout)
    assert index_of(checkout).stat().st_mtime > time.time()


def test_an_edit_of_the_same_size_in_the_second_of_the_checkout_is_recorded(checkout: Git) -> None:
    (checkout.cwd / "a.txt").write_text("two\n")
    assert recorded(checkout, "a.txt") == b"two\n"


def test_an_edit_of_the_same_size_with_its_time_put_back_is_recorded(checkout: Git) -> None:
    path = checkout.cwd / "a.txt"
    before = path.stat()
    time.sleep(1.1)
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert recorded(checkout, "a.txt") == b"two\n"
