"""Every way in which a manifest leaves what its lane was given, by its cause."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orch.activities.lanes.incumbent import Laid
from orch.activities.lanes.links import link_flaw
from orch.activities.lanes.manifest import Entry, Manifest
from orch.activities.lanes.names import path_flaw
from orch.activities.lanes.scope import Scope, manifest_flaw
from orch.activities.trees import TREE_MODE
from orch.activities.trees import Entry as TreeEntry
from orch.workflows.model.round.plan import RoundPlan
from orch.workflows.model.round.ticket import Cause

SHA = "a" * 64
GONE = "000000"
FILES = {
    b"README.md": "100644",
    b"src/a.py": "100644",
    b"src/deep/b.py": "100644",
    b"src/deep/er/c.py": "100644",
    b"src/link": "deep/b.py",
    b"src/up": "deep/er",
    b"src/abs": "/etc",
    b"src/sub": "160000",
    b"src/golden/g": "100644",
    b"src/tests/t.py": "100644",
    b"other/c.py": "100644",
    b"bench/run.py": "100644",
    b"other/far": "../src/deep/er/../../../README.md",
}
"""Modes of files, and where links lead."""


class Held:
    """A tree that is held in a mapping."""

    def __init__(self, files: Mapping[bytes, str]) -> None:
        self.files = files

    def at(self, path: bytes) -> TreeEntry | None:
        mode = self.files.get(path)
        if mode is not None:
            return TreeEntry(mode if mode in {"100644", "100755", "160000"} else "120000", path.hex())
        return TreeEntry(TREE_MODE, "") if any(name.startswith(path + b"/") for name in self.files) else None

    def folder(self, path: bytes) -> Mapping[bytes, TreeEntry]:
        start = path + b"/" if path else b""
        names = {name[len(start) :].split(b"/")[0] for name in self.files if name.startswith(start)}
        return {name: entry for name in names if (entry := self.at(start + name))}

    def target(self, link: TreeEntry) -> bytes:
        return self.files[bytes.fromhex(link.id)].encode()


def laid(*entries: Entry, links: Mapping[bytes, bytes] | None = None) -> Laid:
    return Laid(Held(FILES), Manifest("r1", "l1", tuple(sorted(entries)), ""), links or {})


def write(path: bytes, mode: str = "100644") -> Entry:
    return Entry(path, mode, SHA)


def delete(path: bytes) -> Entry:
    return Entry(path, GONE, "")


@pytest.fixture
def scope(plan: Callable[..., RoundPlan]) -> Scope:
    return Scope.of(plan("0" * 40, ("src/**", "both/**", "bench/new")), "l1")


def cause(scope: Scope, case: Laid) -> Cause | None:
    flaw = manifest_flaw(scope, case)
    assert flaw is None or flaw.detail.isprintable()
    return flaw.cause if flaw else None


GOOD: tuple[tuple[Entry, ...], ...] = (
    (write(b"src/a.py"),),
    (write(b"src/new/er/x.py", "100755"), delete(b"src/a.py")),
    (write(b"src/tests/new_test.py"),),
    (write(b"src/.gitattributes"), write(b"src/deep/.gitignore")),
    (write(b"src/.github/x"), write(b"src/git"), write(b"src/...git"), write(b"src/git~2"), write(b"src/a.git")),
    (write(b"src/.orch"), write(b"src/caf\xe9"), write(b"src/\xff\xfe"), write(b"src/a b\n\\x")),
    (delete(b"src/a.py"), write(b"src/a.py/inner")),
    (delete(b"src/deep/b.py"), delete(b"src/deep/er/c.py"), write(b"src/deep")),
    (delete(b"src/a.py"), write(b"src/A.py")),
    (delete(b"src/deep/b.py"), delete(b"src/deep/er/c.py"), write(b"src/Deep/b.py")),
    (delete(b"src/link"), write(b"src/link/x")),
    (write(b"src/deep/er", "100644"), delete(b"src/deep/er/c.py")),
)


@pytest.mark.parametrize("entries", GOOD)
def test_what_the_lane_may_write_has_no_flaw(scope: Scope, entries: tuple[Entry, ...]) -> None:
    assert cause(scope, laid(*entries)) is None


BAD: tuple[tuple[Cause, tuple[Entry, ...]], ...] = (
    (Cause.NO_CHANGE, ()),
    # whose it is
    (Cause.OUT_OF_SCOPE, (write(b"README.md"),)),
    (Cause.OUT_OF_SCOPE, (delete(b"README.md"),)),
    (Cause.OUT_OF_SCOPE, (write(b"other/c.py"),)),
    (Cause.OUT_OF_SCOPE, (write(b"other/new"),)),
    (Cause.OUT_OF_SCOPE, (write(b"src"), delete(b"src/a.py"))),
    (Cause.OUT_OF_SCOPE, (write(b"src2/a.py"),)),
    (Cause.OUT_OF_SCOPE, (write(b"Src/a.py"),)),
    (Cause.OUT_OF_SCOPE, (write(b".gitattributes"),)),
    (Cause.OUT_OF_SCOPE, (write(b".gitignore"),)),
    (Cause.OUT_OF_SCOPE, (write(b"src/a.py"), write(b"x"))),
    (Cause.PROTECTED, (write(b"bench/run.py"),)),
    (Cause.PROTECTED, (delete(b"bench/run.py"),)),
    (Cause.PROTECTED, (write(b"bench/new"),)),
    (Cause.PROTECTED, (write(b"src/golden/g"),)),
    (Cause.PROTECTED, (write(b"src/golden/new"),)),
    (Cause.PROTECTED, (write(b"src/golden/new\n"),)),
    (Cause.PROTECTED, (write(b"src/tests/t.py"),)),
    (Cause.PROTECTED, (write(b"src/check it.py"),)),
    (Cause.PROTECTED, (write(b".orch/round"),)),
    (Cause.PROTECTED, (write(b".ORCH"),)),
    # no path in a checkout
    (Cause.MALFORMED, (write(b""),)),
    (Cause.MALFORMED, (write(b"/src/a.py"),)),
    (Cause.MALFORMED, (write(b"src/"),)),
    (Cause.MALFORMED, (write(b"src//a.py"),)),
    (Cause.MALFORMED, (write(b"./src/a.py"),)),
    (Cause.MALFORMED, (write(b"src/../README.md"),)),
    (Cause.MALFORMED, (write(b"src/.."),)),
    (Cause.MALFORMED, (write(b"../x"),)),
    (Cause.MALFORMED, (write(b"src/a\0b"),)),
    (Cause.MALFORMED, (write(b"src/" + b"x" * 256),)),
    (Cause.MALFORMED, (write(b"src" + b"/x" * 60),)),
    (Cause.MALFORMED, (write(b"src/" + b"x" * 250 + b"/" + b"y" * 250 + (b"/" + b"z" * 249) * 2),)),
    # what does not fit the tree
    (Cause.MALFORMED, (delete(b"src/nothing"),)),
    (Cause.MALFORMED, (delete(b"src/deep"),)),
    (Cause.MALFORMED, (write(b"src/a.py/inner"),)),
    (Cause.MALFORMED, (write(b"src/link/x"),)),
    (Cause.MALFORMED, (write(b"src/deep"),)),
    (Cause.MALFORMED, (write(b"src/deep"), delete(b"src/deep/b.py"))),
    (Cause.MALFORMED, (write(b"src/n"), write(b"src/n/x"))),
    (Cause.MALFORMED, (write(b"src/n", "120000"), write(b"src/n/x"))),
    (Cause.SUBMODULE, (write(b"src/sub"),)),
    (Cause.SUBMODULE, (delete(b"src/sub"),)),
    (Cause.SUBMODULE, (write(b"src/sub/x"),)),
    (Cause.SUBMODULE, (write(b"src/sub", "120000"),)),
    # names that disks fold
    (Cause.CASE_COLLISION, (write(b"src/A.py"),)),
    (Cause.CASE_COLLISION, (write(b"src/Deep/x"),)),
    (Cause.CASE_COLLISION, (write(b"src/Deep/x"), delete(b"src/deep/b.py"))),
    (Cause.CASE_COLLISION, (write(b"src/DEEP"),)),
    (Cause.CASE_COLLISION, (write(b"src/n"), write(b"src/N"))),
    (Cause.CASE_COLLISION, (write(b"src/n/x"), write(b"src/N/y"))),
    (Cause.CASE_COLLISION, (write(b"src/n"), write(b"src/N/y"))),
    (Cause.CASE_COLLISION, (write("src/é".encode()), write("src/e\u0301".encode()))),
    (Cause.CASE_COLLISION, (write(b"src/STRASSE"), write("src/straße".encode()))),
)


@pytest.mark.parametrize(("expected", "entries"), BAD)
def test_each_flaw_has_its_cause(scope: Scope, expected: Cause, entries: tuple[Entry, ...]) -> None:
    assert cause(scope, laid(*entries)) is expected


@pytest.mark.parametrize("facts", [{"round": "r2"}, {"lane": "l2"}])
def test_manifest_for_another_lane_is_malformed(scope: Scope, facts: dict[str, Any]) -> None:
    manifest = replace(laid(write(b"src/a.py")).manifest, **facts)
    assert cause(scope, Laid(Held(FILES), manifest, {})) is Cause.MALFORMED


def test_names_that_the_incumbent_has_in_both_spellings_may_be_written(scope: Scope) -> None:
    tree = Held({b"src/a.py": "100644", b"src/A.py": "100644", b"src/Deep/x": "100644", b"src/deep/x": "100644"})

    def found(*paths: bytes) -> Cause | None:
        return cause(scope, Laid(tree, Manifest("r1", "l1", tuple(map(write, paths)), ""), {}))

    assert found(b"src/A.py") is None
    assert found(b"src/A.py", b"src/a.py", b"src/deep/x") is None
    assert found(b"src/A.py", b"src/DEEP") is Cause.CASE_COLLISION
    assert found(b"src/DEEP/y", b"src/deep/x") is Cause.CASE_COLLISION


def test_globs_of_another_lane_come_before_the_own_ones(plan: Callable[..., RoundPlan]) -> None:
    scope = Scope.of(plan("0" * 40, ("**",)), "l1")
    assert cause(scope, laid(write(b"new.py"))) is None
    assert cause(scope, laid(write(b"other/new.py"))) is Cause.OUT_OF_SCOPE


GITS = (
    ".git", ".GIT", ".Git", ".git ", ".git.", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1",
    "git~1 .", "git~1:x", ".g\u200cit", "\ufeff.git", ".gi\u206ft\u200e", "a\\.git", ".git\\config", "x\\GIT~1 \\y",
    ".git\\",
)  # fmt: skip
MODULES = (
    ".gitmodules", ".GitModules", ".gitmodules .", ".gitmodules:x", "gitmod~1", "GITMOD~4 ", "gi7eba~1", "gi7eb~10",
    "GI7~1234", "~1234567", ".git\u200dmodules", "a\\.gitmodules",
)  # fmt: skip
RULES = (
    ".GITIGNORE", ".gitignore ", "gitign~1", "gi250a~9", ".gitAttributes", ".gitattributes::$DATA", "gitatt~2",
    "gi7d29~1", ".gitattr\u200cibutes", "x\\.gitignore",
)  # fmt: skip
PLAIN = (
    "git", "gitmodules", ".gitx", ".gi", ".git-x", "git~2", "git~10", "gitmod~5", "gi7ebb~1", "gi7eba~0", "gi7eba~",
    "~0234567", ".github", "git\\x", "a.git", ".g\u200bit", ".gitmodules.txt", "gitignore",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, Cause.GIT_PATH) for name in (*GITS, *RULES)),
        *((name, Cause.SUBMODULE) for name in MODULES),
        *((name, None) for name in (*PLAIN, ".gitignore", ".gitattributes")),
    ],
)
def test_other_spellings_of_what_git_keeps_for_itself_are_found(name: str, expected: Cause | None) -> None:
    for path in (name, f"src/{name}", f"src/{name}/x"):
        flaw = path_flaw(write(path.encode()))
        assert (flaw.cause if flaw else None) is expected, path


@pytest.fixture(scope="module")
def empty_repo(tmp_path_factory: pytest.TempPathFactory, kit: Any) -> Path:
    made: Path = kit.make_repo(tmp_path_factory.mktemp("empty") / "repo", {"a": ""})
    return made


PIECES = st.sampled_from(
    [".", "g", "i", "t", "G", "~", "1", "2", " ", ":", "\\", "\u200c", "modules", "git", ".git", "gi7eba", "x"]
)


@settings(max_examples=150)
@given(parts=st.lists(PIECES, min_size=1, max_size=6), mode=st.sampled_from(["100644", "120000"]))
@example(parts=[".git", " ", "."], mode="100644")
@example(parts=[".git", "modules"], mode="120000")
def test_whatever_git_itself_refuses_is_refused(empty_repo: Path, parts: list[str], mode: str) -> None:
    path = "src/" + "".join(parts)
    told = ("git", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "--add", "--cacheinfo")
    env = {**os.environ, "GIT_INDEX_FILE": str(empty_repo / "private")}
    blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    done = subprocess.run([*told, f"{mode},{blob},{path}"], cwd=empty_repo, env=env, capture_output=True, check=False)
    (empty_repo / "private").unlink(missing_ok=True)
    if done.returncode:
        assert path_flaw(write(path.encode(), mode))


@pytest.mark.parametrize("name", [b".gitignore", b".gitattributes"])
def test_rules_are_no_links(name: bytes) -> None:
    flaw = path_flaw(write(b"src/" + name, "120000"))
    assert flaw
    assert flaw.cause is Cause.GIT_PATH


def links(**targets: bytes) -> Laid:
    """New links below `src`, by their names; `__` is a slash."""
    found = {b"src/" + name.replace("__", "/").encode(): target for name, target in targets.items()}
    return laid(*(write(path, "120000") for path in found), links=found)


STAYS = (
    links(n=b"a.py"),
    links(n=b"../README.md"),
    links(n=b".."),
    links(n=b"../other/c.py"),
    links(n=b"nowhere"),
    links(deep__n=b"../../README.md"),
    links(n=b"up/../../../README.md"),
    links(n=b"./deep/.//er/"),
    links(n=b"m/c.py", m=b"deep/er"),
    links(n=b"n__x"),
    links(n=b"a:b\\c"),
)


@pytest.mark.parametrize("case", STAYS)
def test_link_that_stays_inside_has_no_flaw(case: Laid) -> None:
    assert link_flaw(case) is None


LEAVES = (
    links(n=b"/etc/passwd"),
    links(n=b"/"),
    links(n=b".//../../x"),
    links(n=b"../.."),
    links(n=b"../../src/a.py"),
    links(deep__n=b"../../../x"),
    links(n=b"up/../../../../x"),  # up leads to deep/er
    links(n=b"abs/passwd"),
    links(n=b"abs"),
    links(n=b"m", m=b"../.."),
    links(n=b"m/../x", m=b".."),
    links(n=b"m/x", m=b"/tmp"),
    links(n=b"m", m=b"n"),
    links(n=b"n"),
    links(n=b"n/x"),
    links(n=b"x/" * 300),
    links(n=b"../.git/config"),
    links(n=b"../.GIT/config"),
    links(n=b"deep/git~1"),
    links(n=b""),
    links(n=b"a\0b"),
)


@pytest.mark.parametrize("case", LEAVES)
def test_link_that_leaves_the_checkout_is_found(case: Laid) -> None:
    flaw = link_flaw(case)
    assert flaw
    assert flaw.cause is Cause.LINK_ESCAPES
    assert flaw.detail.isprintable()


def test_a_link_of_the_incumbent_that_a_submission_turns_outwards_is_found() -> None:
    folder = b"src/deep/er"
    turned = laid(delete(folder + b"/c.py"), write(folder, "120000"), links={folder: b".."})
    assert (flaw := link_flaw(turned))
    assert "other/far" in flaw.detail
    away = laid(delete(b"src/up"), write(b"src/up/x"))
    assert link_flaw(away) is None
