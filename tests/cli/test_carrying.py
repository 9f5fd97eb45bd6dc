"""Carried paths before a start: what brings nothing, what is too much, and what a fresh workspace would lack."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from orch.activities.home import Home
from orch.activities.repository import Repository, inspect
from orch.activities.workspaces.probing import overlay_flaw
from orch.cli import carrying
from orch.workflows.errors import RefusedError

PLENTY = 1 << 50


@pytest.fixture
def found(repo: Path, kit: ModuleType) -> Repository:
    """A project that ignores what its dependencies lie in; one folder holds tracked and ignored files."""
    kit.write(
        repo,
        {
            ".gitignore": ".venv/\nnode_modules\n.env\n*.cache\n",
            "vendor/kept.txt": "tracked",
            ".venv/bin/tool": "tool",
            "web/node_modules/a/index.js": "x" * 9000,
            ".env": "SECRET=1",
        },
    )
    kit.commit_all(repo)
    kit.write(repo, {"vendor/built.cache": "built", "notes.txt": "untracked, not ignored"})
    (repo / "gone").symlink_to("nowhere")
    return inspect(repo)


@pytest.mark.parametrize(
    "globs", [[".venv"], ["node_modules/", "!.env"], ["vendor"], ["notes.txt"], ["**/*.cache"], []]
)
def test_globs_that_bring_something_pass(found: Repository, globs: list[str]) -> None:
    carrying.check(found, globs, free=PLENTY)


@pytest.mark.parametrize(
    ("glob", "said", "mend"),
    [
        (".vnev", "'.vnev' matches nothing", "did you mean '.venv'?"),
        ("build", "'build' matches nothing", "ignored here: .env, .venv"),
        ("slug.py", "'slug.py' matches only tracked files", "every workspace has these already"),
        ("tests", "'tests' matches only tracked files", "drop it"),
        ("gone", "'gone' is a link that leads nowhere", "mend the link"),
    ],
)
def test_glob_that_brings_nothing_is_refused_by_name_with_the_mend(
    found: Repository, glob: str, said: str, mend: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        carrying.check(found, [".venv", glob], free=PLENTY)

    assert said in refused.value.message
    assert mend in refused.value.hint


def test_more_than_can_be_copied_is_refused_with_the_size_and_the_largest_folders(found: Repository) -> None:
    with (found.top / "web/node_modules/huge").open("wb") as file:
        file.truncate(1 << 40)  # a sparse file takes no room

    carrying.check(found, ["node_modules", ".venv"], free=PLENTY)
    with pytest.raises(RefusedError) as refused:
        carrying.check(found, ["node_modules", ".venv"], free=30_000)

    assert "29 KiB are free for 2 copies or more" in refused.value.message
    assert "the largest: web/node_modules/a" in refused.value.message


def test_overlays_need_room_for_one_copy(found: Repository) -> None:
    total = 3 * 4096 * 3  # two small files and their folders, and more: less than 36 KiB, more than 18

    carrying.check(found, ["node_modules", ".venv"], free=total, copies=lambda: 1)
    with pytest.raises(RefusedError, match="are free for 2 copies"):
        carrying.check(found, ["node_modules", ".venv"], free=total)
    with pytest.raises(RefusedError, match="are free for 1 copy or more"):
        carrying.check(found, ["node_modules", ".venv"], free=total // 3, copies=lambda: 1)


def test_copies_are_counted_by_the_provider_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "clone")
    assert carrying.copies(tmp_path) == 2

    monkeypatch.setenv("ORCH_WORKSPACES", "auto")
    flaw = overlay_flaw(Home(tmp_path))
    assert carrying.copies(tmp_path) == (2 if flaw else 1)


def test_more_than_20_gib_is_refused_whatever_is_free(found: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "MAX_BYTES", 4096)

    with pytest.raises(RefusedError, match="would be carried, at most 4 KiB"):
        carrying.check(found, ["node_modules"], free=PLENTY)


def test_what_is_ignored_usual_and_not_carried_is_told_with_its_size(found: Repository) -> None:
    told = carrying.suggestions(found, [".env"])

    assert [fact.split(" (")[0] for fact in told] == ["not carried: .venv", "not carried: web/node_modules"]
    assert all("add --carry" in fact and "KiB)" in fact for fact in told)
    assert carrying.suggestions(found, [".env", ".venv", "node_modules"]) == []
