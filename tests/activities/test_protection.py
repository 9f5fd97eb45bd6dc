"""Which paths are protected, and whether they changed on disk while something was measured."""

from __future__ import annotations

import os
from typing import Any

import pytest

from orch.activities.protection import changed_protected, matcher, matches


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("tests/**", b"tests/a/b.py", True),
        ("tests/**", b"src/tests/a.py", False),
        ("conftest.py", b"deep/conftest.py", True),
        ("/conftest.py", b"deep/conftest.py", False),
        ("*.toml", b"\xff.toml", True),
        ("**/conftest.py", b"new\nline/conftest.py", True),
        ("tests/**/conftest.py", b"tests/new\nline/x/conftest.py", True),
        ("conftest.py", b"conftest.py\n", False),
        ("tests", b"tests/a", True),
    ],
)
def test_globs_match_as_in_a_gitignore(glob: str, name: bytes, *, expected: bool) -> None:
    assert matches(matcher([glob]), name) is expected


def test_changed_and_deleted_protected_paths_are_seen(kit: Any, tmp_path: Any, bench: Any) -> None:
    files = {"tests/a.py": "aa\n", "tests/b.py": "b\n", "tests/c.py": "c\n", "src/d.py": "d\n"}
    here = bench(kit.make_repo(tmp_path / "repo", files))
    tree, index = here.open(), here.folder() / "index"
    before = index.stat()

    def ask() -> list[bytes]:
        return changed_protected(here.store, tree, index=index, protected=["tests/**"])

    assert ask() == []
    kit.write(tree, {"tests/cache.pyc": "new files do not count\n", "src/d.py": "not protected\n"})
    os.utime(tree / "tests" / "c.py")
    assert ask() == []
    kit.write(tree, {"tests/a.py": "bb\n"})
    (tree / "tests" / "b.py").unlink()
    (tree / ".git").unlink()
    assert ask() == [b"tests/a.py", b"tests/b.py"]
    assert index.stat() == before


def test_globs_with_an_equals_sign_let_candidates_add(kit: Any, tmp_path: Any, bench: Any) -> None:
    here = bench(kit.make_repo(tmp_path / "repo", {"test_a.py": "a\n", "test_b.py": "b\n", "sub/conftest.py": "c\n"}))
    tree = here.open()
    (tree / "test_b.py").unlink()
    kit.write(tree, {"test_a.py/inner": "i\n"} if not (tree / "test_a.py").unlink() else {})
    kit.write(tree, {"test_new.py": "n\n", "conftest.py": "n\n", "sub/test_c.py": "n\n"})

    snapshot = here.snapshot(protected=["=test_*.py", "conftest.py"])

    assert set(snapshot.restored) >= {"conftest.py", "test_a.py", "test_b.py"}
    assert {"sub/test_c.py", "test_new.py"} <= set(snapshot.paths)
    assert here.files(snapshot.commit)["test_a.py"] == b"a\n"


@pytest.mark.parametrize(
    ("line", "bent"),
    [
        ("* text eol=crlf", True),
        ("tests/a.sh working-tree-encoding=ISO-8859-1", True),
        ("*.sh filter=x", True),
        ("*.png binary", False),
    ],
)
def test_attributes_of_protected_paths_are_protected(
    kit: Any, tmp_path: Any, bench: Any, line: str, bent: bool
) -> None:
    here = bench(kit.make_repo(tmp_path / "repo", {"tests/a.sh": "exit 1\n", ".gitattributes": "*.md text\n"}))
    kit.write(here.open(), {".gitattributes": f"*.md text\n{line}\n", "x": "x\n"})

    snapshot = here.snapshot(protected=["tests/**"])

    assert snapshot.restored == ((".gitattributes",) if bent else ())
    assert snapshot.paths == (("x",) if bent else (".gitattributes", "x"))
