"""Globs against the tree of a commit, a path that two globs would both match, and hashes of the validator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orch.activities.commit_tree import CommitTree
from orch.activities.glob_overlap import common_path
from orch.activities.home import Home
from orch.activities.protection import matcher, matches
from orch.activities.repository import inspect
from orch.activities.round_facts import broken, matched, meetings, validator_hashes
from orch.activities.store import Store
from orch.workflows.model.round.campaign import NamedFile
from orch.workflows.model.round.facts import LaneFacts

FILES: dict[str, str | bytes] = {
    "setup.py": "",
    "src/a.py": "a",
    "src/b.py": "b",
    "src/deep/a.py": "",
    "bench/check.py": "check\r\n",
    b"src/odd \xff.py".decode("utf-8", "surrogateescape"): "",
}


@pytest.fixture
def repo(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    return make_repo(tmp_path / "project", FILES)


@pytest.fixture
def tree(repo: Path, home: Home, kit: ModuleType) -> CommitTree:
    found = CommitTree.find(home, inspect(repo), kit.git(repo, "rev-parse", "HEAD"))
    assert found is not None
    return found


def look(tree: CommitTree, *globs: str, protected: tuple[str, ...] = ()) -> LaneFacts:
    (found,) = matched([LaneFacts(id="a", globs=globs)], protected, tree)
    return found


def test_globs_match_the_commit_and_not_the_working_tree(tree: CommitTree, repo: Path) -> None:
    (repo / "src/a.py").unlink()
    (repo / "src/new.py").touch()

    assert look(tree, "src/*.py").paths == ("src/a.py", "src/b.py", r"src/odd \xff.py")


def test_path_is_taken_away_by_an_exclamation_mark(tree: CommitTree) -> None:
    assert look(tree, "src/**", "!src/deep/**", "!odd*").paths == ("src/a.py", "src/b.py")


def test_name_without_a_slash_matches_at_any_depth(tree: CommitTree) -> None:
    assert look(tree, "a.py").paths == ("src/a.py", "src/deep/a.py")


def test_protected_paths_are_told_also_where_new_ones_may_come(tree: CommitTree) -> None:
    found = look(tree, "src/**", "bench/**", protected=("=bench/**", "src/**", "!src/b.py"))

    assert found.closed == ("bench/check.py", "src/a.py", "src/deep/a.py", r"src/odd \xff.py")


def test_idle_and_broken_globs_are_told_by_their_number(tree: CommitTree) -> None:
    found = look(tree, "src/a.py", "src/none.py", "a\\", "!src/none.py", "src/new/")

    assert (found.paths, found.idle, found.broken) == (("src/a.py",), (1, 4), (2,))


@pytest.mark.parametrize("glob", ["", "  ", "#x", "/", "!", "a\\", "a[", "[z-a]"])
def test_broken_globs_are_no_globs(glob: str) -> None:
    assert broken(glob)


def test_commit_that_only_the_store_has_is_found(repo: Path, home: Home) -> None:
    store = Store.of(home, inspect(repo))
    made = store.git.text("commit-tree", store.git.text("mktree", stdin=b""), "-m", "x")

    found = CommitTree.find(home, inspect(repo), made)

    assert found is not None
    assert (found.commit, dict(found.leaves)) == (made, {})


def test_what_is_no_commit_is_not_found(repo: Path, home: Home, kit: ModuleType) -> None:
    kit.git(repo, "tag", "-a", "-m", "x", "v1")
    names = [kit.git(repo, "rev-parse", name) for name in ("v1", "HEAD^{tree}", "HEAD:setup.py")]

    assert [CommitTree.find(home, inspect(repo), name) for name in (*names, "0" * 40)] == [None] * 4


def test_validator_is_hashed_as_the_commit_holds_it(tree: CommitTree, repo: Path) -> None:
    (repo / "bench/check.py").write_text("edited")
    digest = hashlib.sha256(b"check\r\n").hexdigest()

    (file,), wrong = validator_hashes([NamedFile(path="bench/check.py", sha256=digest)], tree)

    assert (file.path, file.sha256, wrong) == ("bench/check.py", digest, [])


def test_validator_that_is_none_or_another_is_told(tree: CommitTree, repo: Path, kit: ModuleType, home: Home) -> None:
    (repo / "link").symlink_to("setup.py")
    commit = kit.commit_all(repo)
    linked = CommitTree.find(home, inspect(repo), commit)
    assert linked is not None
    named = [NamedFile(path="bench"), NamedFile(path="link"), NamedFile(path="src/a.py", sha256="0" * 64)]

    hashes, wrong = validator_hashes(named, linked)

    assert hashes == []
    assert [index for index, _, _ in wrong] == [0, 1, 2]
    assert "`bench` is no file" in wrong[0][1]
    assert f"has the SHA-256 {hashlib.sha256(b'a').hexdigest()}, not the one given" in wrong[2][1]


MEET = {
    "crossing stars": ("src/*_a.py", "src/b_*.py", True),
    "a name and a folder": ("x.py", "src/", True),
    "folders side by side": ("src/a/", "src/b/", False),
    "one file and another": ("/a.py", "/b.py", False),
    "endings": ("*.py", "*.c", False),
    "anchored and deep": ("/a.py", "src/**", False),
    "deep and deep": ("**/x/*.py", "lib/**", True),
    "below a folder by its name": ("src", "src/**/a.py", True),
    "question marks": ("a?.py", "a??.py", False),
    "classes": ("a[0-4].py", "a[!0-4].py", False),
    "classes that share": ("a[0-4].py", "a[4-9].py", True),
    "escaped star": ("a\\*.py", "ab.py", False),
    "everything": ("**", "src/x.py", True),
}


@pytest.mark.parametrize(("one", "other", "meet"), MEET.values(), ids=MEET.keys())
def test_globs_meet_in_a_path_that_both_match(one: str, other: str, meet: bool) -> None:
    path = common_path(one, other)

    assert (path is not None) == meet
    if path is not None:
        assert all(matches(matcher([glob]), path.encode()) for glob in (one, other))


GLOB = st.lists(st.sampled_from(["a", "b", "*", "?", "**", "/", "[ab]", "[!a]"]), min_size=1, max_size=6).map("".join)
PATH = st.lists(st.text("abx", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@given(GLOB, GLOB, PATH)
@example("*/aaaa", "*/aaaa", "a")
def test_common_path_is_right_where_pathspec_is_asked(one: str, other: str, path: str) -> None:
    if any(broken(glob) or "//" in glob or glob.strip("/*") == "" for glob in (one, other)):
        return
    specs = [matcher([glob]) for glob in (one, other)]
    found = common_path(one, other)

    if found is None:
        assert not all(matches(spec, path.encode()) for spec in specs)
    else:
        assert all(matches(spec, found.encode()) for spec in specs)


@pytest.mark.parametrize("glob", ["src/" + "*" * 1000, "a*" * 1000])
def test_glob_of_a_thousand_stars_is_none_and_nobody_waits_for_what_it_matches(glob: str) -> None:
    one, other = LaneFacts(id="a", globs=(glob,)), LaneFacts(id="b", globs=("src/**",))

    assert broken(glob)
    assert meetings([one.model_copy(update={"broken": (0,)}), other]) == ()


def test_meeting_holds_against_what_a_lane_takes_away() -> None:
    left, right = LaneFacts(id="a", globs=("src/*.py", "!src/*_x.py")), LaneFacts(id="b", globs=("src/*_x.py",))
    third = LaneFacts(id="c", globs=("src/new_*",))

    assert [(one.lanes, one.path) for one in meetings([left, right, third])] == [
        ((0, 2), "src/new_.py"),
        ((1, 2), "src/new_x.py"),
    ]
