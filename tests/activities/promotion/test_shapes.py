"""Every shape a change can have arrives as the tree that was tested, and goes back as it came."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.git import Git
from orch.workflows.model.promotion import Promotion
from orch.workflows.model.reason import PromotionReason

Scene = Any


def code(result: Promotion) -> PromotionReason:
    assert result.refused is not None
    return result.refused.code


def odd_names(folder: Path) -> None:
    for name in (
        "café.md",
        "日本.txt",
        "a b/c b/d.txt",
        "tab\tx",
        '"q".txt',
        "-n",
        ":(glob)x",
        "new\nline",
        "back\\slash",
        "README",
        "readme",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    Path(os.fsdecode(os.fsencode(folder) + b"/raw\xff\xfe")).write_bytes(b"raw")


def file_to_folder(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt/deep").mkdir(parents=True)
    (folder / "a.txt/deep/x").write_text("x")
    (folder / "a.txt/y").write_text("y")


def folder_to_file(folder: Path) -> None:
    shutil.rmtree(folder / "dir")
    (folder / "dir").write_text("a file now\n")


def file_to_link(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("b.txt")


def folder_to_link(folder: Path) -> None:
    (folder / "dir").rename(folder / "moved")
    (folder / "dir").symlink_to("moved")


def link_changes(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("/nowhere/else")


def link_to_folder(folder: Path) -> None:
    (folder / "folder-link").unlink()
    (folder / "folder-link").mkdir()
    (folder / "folder-link/c.txt").write_text("not through the link\n")


def chmod(folder: Path) -> None:
    (folder / "run.sh").chmod(0o755)
    (folder / "tool.sh").chmod(0o644)


def deletions(folder: Path) -> None:
    (folder / "dir/deep/d.txt").unlink()


def nested(folder: Path) -> None:
    (folder / "x/y/z").mkdir(parents=True)
    (folder / "x/y/z/f").write_text("f")
    (folder / "x/g").write_bytes(bytes(range(256)) * 300)


SHAPES = [
    odd_names, file_to_folder, folder_to_file, file_to_link, folder_to_link, link_changes, link_to_folder, chmod,
    deletions, nested,
]  # fmt: skip


def prepare(scene: Scene) -> None:
    (scene.top / "link").symlink_to("a.txt")
    (scene.top / "folder-link").symlink_to("dir")
    (scene.top / "tool.sh").write_text("tool\n")
    (scene.top / "tool.sh").chmod(0o755)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_arrives_and_goes_back(scene: Scene, shape: Callable[[Path], None]) -> None:
    prepare(scene)
    before, private = scene.files(), scene.private()
    old = scene.snapshot()
    new = scene.edited(old, shape)
    result = scene.promote(old, new)
    assert result.tree == scene.tree(new)
    assert result.paths > 0
    assert scene.tree(scene.snapshot("after")) == scene.tree(new)
    assert scene.restore(old, new).tree == scene.tree(old)
    assert (scene.files(), scene.private()) == (before, private)
    assert scene.journals() == []


def test_an_emptied_folder_goes_and_other_empty_folders_stay(scene: Scene) -> None:
    (scene.top / "empty/inner").mkdir(parents=True)
    old = scene.snapshot()
    new = scene.edited(old, deletions)
    scene.promote(old, new)
    assert not (scene.top / "dir/deep").exists()
    assert (scene.top / "dir/c.txt").exists()
    assert (scene.top / "empty/inner").is_dir()


def test_a_folder_with_the_users_ignored_file_is_not_replaced_by_a_file(scene: Scene) -> None:
    (scene.top / "dir/deep/mine.log").write_text("mine")
    old = scene.snapshot()
    new = scene.edited(old, folder_to_file)
    files = scene.files()
    result = scene.promote(old, new)
    assert code(result) is PromotionReason.EDITED
    assert result.refused
    assert result.refused.data["paths"] == ("dir/deep/mine.log",)
    assert scene.files() == files


def test_a_folder_emptied_of_tracked_files_keeps_the_users_ignored_file(scene: Scene) -> None:
    (scene.top / "dir/deep/mine.log").write_text("mine")
    old = scene.snapshot()
    scene.promote(old, scene.edited(old, deletions))
    assert [path.name for path in (scene.top / "dir/deep").iterdir()] == ["mine.log"]


@pytest.mark.parametrize("name", ["dir/c.txt", "dir/extra.txt"])
def test_nothing_is_written_through_a_link_put_in_place_of_a_folder(scene: Scene, name: str) -> None:
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: (folder / name).write_text("through\n"))
    outside = scene.work / "outside"
    (scene.top / "dir").rename(outside)
    (scene.top / "dir").symlink_to(outside)
    result = scene.promote(old, new)
    assert code(result) is PromotionReason.EDITED
    assert (outside / "c.txt").read_text() == "c\n"
    assert not (outside / "extra.txt").exists()


def test_a_socket_in_the_way_is_an_edit(scene: Scene) -> None:
    old = scene.snapshot()
    new = scene.edited(old, lambda folder: (folder / "s").write_text("s"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(scene.top / "s"))
        assert code(scene.promote(old, new)) is PromotionReason.EDITED


def test_a_submodule_link_that_moves_is_not_supported(scene: Scene) -> None:
    old = scene.snapshot()
    git = Git(scene.work).with_env(GIT_DIR=scene.store.git_dir, GIT_INDEX_FILE=scene.work / "sub.index")
    git.run("read-tree", old)
    git.run("update-index", "--add", "--cacheinfo", f"160000,{old},sub")
    new = git.text("commit-tree", git.text("write-tree"), "-p", old, "-m", "sub")
    result = scene.promote(old, new)
    assert code(result) is PromotionReason.UNSUPPORTED
    assert result.refused
    assert result.refused.data["paths"] == ("sub",)


def test_the_executable_bit_arrives_where_git_does_not_look_at_it(scene: Scene) -> None:
    old = scene.snapshot()
    scene.git.run("config", "core.fileMode", "false")
    new = scene.edited(old, lambda folder: (folder / "run.sh").chmod(0o755))
    (scene.top / "run.sh").chmod(0o600)
    assert scene.promote(old, new).paths == 1
    assert stat.S_IMODE((scene.top / "run.sh").stat().st_mode) == 0o700
    assert scene.promote(old, new).paths == 0


def test_permissions_that_git_does_not_know_survive_an_edit(scene: Scene) -> None:
    (scene.top / "a.txt").chmod(0o640)
    old = scene.snapshot()
    scene.promote(old, scene.edited(old, lambda folder: (folder / "a.txt").write_text("a2\n")))
    assert stat.S_IMODE((scene.top / "a.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("autocrlf", ["true", "input"])
def test_line_endings_follow_the_users_settings(scene: Scene, autocrlf: str) -> None:
    (scene.top / "kept.txt").write_bytes(b"1\r\n2\r\n")
    scene.git.run("add", "kept.txt")
    scene.git.run("commit", "-q", "-m", "crlf in the index")
    scene.git.run("config", "core.autocrlf", autocrlf)
    scene.git.run("rm", "-rq", "--cached", "a.txt")
    (scene.top / "a.txt").write_bytes(b"a\r\n")
    old = scene.edited(scene.snapshot(), lambda folder: (folder / "a.txt").write_bytes(b"a\n"), name="clean")
    new = scene.edited(
        old, lambda f: ((f / "a.txt").write_bytes(b"a\nb\n"), (f / "kept.txt").write_bytes(b"1\r\n3\r\n"))
    )
    assert scene.promote(old, new).paths == 2
    assert (scene.top / "a.txt").read_bytes() == (b"a\r\nb\r\n" if autocrlf == "true" else b"a\nb\n")
    assert (scene.top / "kept.txt").read_bytes() == b"1\r\n3\r\n"


def test_new_attributes_apply_to_what_arrives_with_them(scene: Scene) -> None:
    old = scene.snapshot()

    def edit(folder: Path) -> None:
        (folder / ".gitattributes").write_text("*.txt text eol=crlf\n*.id ident\n")
        (folder / "dir/c.txt").write_bytes(b"c\r\nmore\r\n")
        (folder / "dir/x.id").write_text("$Id$\n")

    new = scene.edited(old, edit)
    assert scene.promote(old, new).paths == 3
    assert (scene.top / "dir/c.txt").read_bytes() == b"c\r\nmore\r\n"
    assert (scene.top / "dir/x.id").read_bytes().startswith(b"$Id: ")
    assert (scene.top / "a.txt").read_bytes() == b"a\n"
    assert scene.promote(old, new).paths == 0


def test_filters_of_the_user_clean_and_smudge(scene: Scene) -> None:
    scene.git.run("config", "filter.rot.clean", "tr a-m A-M")
    scene.git.run("config", "filter.rot.smudge", "tr A-M a-m")
    (scene.top / ".git/info").mkdir(exist_ok=True)
    (scene.top / ".git/info/attributes").write_text("*.rot filter=rot\n")
    (scene.top / "x.rot").write_text("abc\n")
    scene.git.run("add", "x.rot")
    scene.git.run("commit", "-q", "-m", "rot")
    base = scene.edited(scene.snapshot(), lambda folder: (folder / "x.rot").write_text("ABC\n"), name="clean")
    new = scene.edited(base, lambda folder: (folder / "x.rot").write_text("ABCD\n"))
    assert scene.promote(base, new).paths == 1
    assert (scene.top / "x.rot").read_text() == "abcd\n"


def test_contents_that_the_filters_do_not_give_back_are_refused_untouched(scene: Scene) -> None:
    scene.git.run("config", "filter.lossy.clean", "tr a-z b")
    (scene.top / ".git/info").mkdir(exist_ok=True)
    (scene.top / ".git/info/attributes").write_text("*.lossy filter=lossy\n")
    old = scene.snapshot()
    new = scene.edited(old, lambda f: ((f / "x.lossy").write_text("abc\n"), (f / "a.txt").write_text("a2\n")))
    files = scene.files()
    assert code(scene.promote(old, new)) is PromotionReason.UNSUPPORTED
    assert scene.files() == files
    assert scene.journals() == []


def test_a_filter_that_fails_is_refused_with_what_git_said(scene: Scene) -> None:
    old = scene.snapshot()
    scene.git.run("config", "filter.broken.smudge", "false")
    scene.git.run("config", "filter.broken.required", "true")
    (scene.top / ".git/info").mkdir(exist_ok=True)
    (scene.top / ".git/info/attributes").write_text("*.br filter=broken\n")
    new = scene.edited(old, lambda folder: (folder / "x.br").write_text("x\n"))
    result = scene.promote(old, new)
    assert code(result) is PromotionReason.UNSUPPORTED
    assert result.refused
    assert "x.br" in str(result.refused.data["cause"])
