"""What stands between files and objects: line ends, filters, hooks, identities, submodules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.carry import carry, populated_submodules
from orch.workflows.errors import RefusedError


@pytest.fixture
def repo(tmp_path: Path, make_repo: Callable[..., Path]) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "one\n", "dir/c.txt": "three\n", ".gitignore": "*.log\n"})


def test_line_endings_arrive_as_the_user_has_them(kit: Any, repo: Path, bench: Any, untouched: Any) -> None:
    kit.git(repo, "config", "core.autocrlf", "true")
    kit.git(repo, "config", "core.safecrlf", "true")
    kit.write(repo, {"crlf.txt": b"1\r\n2\r\n", "mixed.txt": b"1\r\n2\n", "binary": b"\0\r\n"})
    untouched()
    here = bench(repo)
    assert here.files(here.baseline().commit)["crlf.txt"] == b"1\n2\n"
    tree = here.open()
    assert (tree / "crlf.txt").read_bytes() == b"1\r\n2\r\n"
    assert (tree / "binary").read_bytes() == b"\0\r\n"
    assert here.snapshot().changed == 0


def test_users_hooks_never_fire(kit: Any, repo: Path, bench: Any, tmp_path: Path, untouched: Any) -> None:
    hooks = tmp_path / "hooks"
    names = ["post-checkout", "pre-commit", "post-commit", "post-index-change", "reference-transaction", "pre-auto-gc"]
    kit.write(hooks, dict.fromkeys(names, f"#!/bin/sh\necho x >> '{tmp_path}/count'\nexit 3\n"))
    kit.write(repo / ".git" / "hooks", dict.fromkeys(names, f"#!/bin/sh\necho x >> '{tmp_path}/count'\nexit 3\n"))
    for hook in (*hooks.iterdir(), *(repo / ".git" / "hooks").iterdir()):
        hook.chmod(0o755)
    for scope in ("--local", "--global"):
        kit.git(repo, "config", scope, "core.hooksPath", str(hooks) if scope == "--global" else ".git/hooks")
    kit.write(repo, {"a.txt": "dirty\n"})
    (tmp_path / "count").unlink(missing_ok=True)
    tree = bench(repo).open()
    kit.write(tree, {"n": "n"})
    bench(repo).snapshot()
    bench(repo).close()
    assert not (tmp_path / "count").exists()


def test_neither_identity_nor_signing_key_is_needed(kit: Any, repo: Path, bench: Any, monkeypatch: Any) -> None:
    for setting in ("commit.gpgsign true", "tag.gpgsign true", "gpg.program /bin/false", "user.useConfigOnly true"):
        kit.git(repo, "config", "--global", *setting.split())
    monkeypatch.delenv("HOME")
    kit.write(repo, {"a.txt": "dirty\n"})
    commit = bench(repo).baseline().commit
    assert bench(repo).store.git.text("show", "-s", "--format=%an %ce %G?", commit) == "orch orch@localhost N"


def test_filters_apply_and_a_missing_one_is_named(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    script = tmp_path / "rot.sh"
    script.write_text("#!/bin/sh\ntr a-z n-za-m\n")
    script.chmod(0o755)
    for direction in ("clean", "smudge"):
        kit.git(repo, "config", f"filter.rot.{direction}", str(script))
    kit.git(repo, "config", "filter.rot.required", "true")
    kit.write(repo, {".gitattributes": "*.rot filter=rot\n", "x.rot": "abc\n"})
    here = bench(repo)
    assert here.files(here.baseline().commit)["x.rot"] == b"nop\n"
    assert (here.open() / "x.rot").read_text() == "abc\n"
    script.unlink()
    here.run = "second"
    with pytest.raises(RefusedError, match=r"filter driver rot of x\.rot cannot run"):
        here.baseline()
    here.run = "run"
    with pytest.raises(RefusedError, match="rot"):
        here.open(2)
    assert not (here.folder(2) / "tree").exists()


def test_pointer_of_a_filter_nobody_configured_is_kept(kit: Any, repo: Path, bench: Any) -> None:
    kit.write(repo, {".gitattributes": "*.bin filter=lfs -text\n", "x.bin": "version https://example.org\noid 1\n"})
    here = bench(repo)
    assert here.files(here.baseline().commit)["x.bin"].startswith(b"version")
    assert (here.open() / "x.bin").read_bytes().startswith(b"version")


def test_submodules_stay_links_and_their_files_can_be_carried(kit: Any, repo: Path, bench: Any, tmp_path: Path) -> None:
    kit.make_repo(tmp_path / "lib", {"lib.c": "int x;\n"})
    kit.git(repo, "submodule", "--quiet", "add", str(tmp_path / "lib"), "sub")
    kit.git(repo, "submodule", "--quiet", "add", str(tmp_path / "lib"), "empty")
    kit.commit_all(repo)
    kit.git(repo, "submodule", "deinit", "-q", "-f", "empty")
    kit.write(repo, {"sub/lib.c": "int dirty;\n"})
    before = kit.fingerprint(repo)
    here = bench(repo)
    assert here.store.git.text("ls-tree", here.baseline().commit, "sub").startswith("160000")
    tree = here.open()
    assert list((tree / "sub").iterdir()) == []
    paths = populated_submodules(here.repository)
    assert paths == [Path("sub")]
    carry(repo, tree, paths)
    assert [p.name for p in (tree / "sub").iterdir()] == ["lib.c"]
    assert kit.git(tree, "status", "--short") == ""
    assert here.snapshot().warnings == ()
    assert here.open(2)
    carry(repo, here.folder(2) / "tree", paths)
    kit.write(here.folder(2) / "tree", {"sub/lib.c": "int edited;\n"})
    assert here.snapshot(2).warnings == ("changes inside the submodule sub are not recorded",)
    assert kit.fingerprint(repo) == before
