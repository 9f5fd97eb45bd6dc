"""A state directory on a disk that does not tell upper case from lower case.

No such disk can be had everywhere, so the disk is told by what git itself asks: whether another spelling of a file of
the repository is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orch.activities.workspaces.bases import bases_of
from orch.activities.workspaces.folding import OTHER_CASE
from orch.activities.workspaces.registry import PROVIDERS
from orch.workflows.errors import RefusedError


@pytest.fixture
def here(bench: Any, make_repo: Any, tmp_path: Path) -> Any:
    made = bench(make_repo(tmp_path / "repo"))
    assert not (made.store.git_dir / OTHER_CASE).exists()
    (made.store.git_dir / OTHER_CASE).touch()
    return made


def commit(kit: Any, here: Any, *names: str) -> str:
    """A baseline with these files."""
    for name in names:
        blob = kit.git(here.repo, "hash-object", "-w", "--stdin", stdin=name.encode())
        kit.git(here.repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    kit.git(here.repo, "commit", "-q", "-m", "more")
    kit.git(here.repo, "checkout", "-q", "--", ".")
    made: str = here.baseline().commit
    return made


@pytest.mark.parametrize("provider", PROVIDERS)
def test_names_that_are_one_file_there_are_refused_by_both_and_nothing_is_left(
    kit: Any, here: Any, provider: str
) -> None:
    made = commit(kit, here, "docs/A.md", "docs/a.md")

    with pytest.raises(RefusedError, match=r"docs/A\.md and docs/a\.md are one file") as refused:
        PROVIDERS[provider].open(here.store, here.folder(), made)

    assert "ORCH_STATE" in refused.value.hint
    assert not [*here.folder().glob("*"), *bases_of(here.store).glob("*.new")]


@pytest.mark.parametrize("names", [("x", "X/y"), ("caf\u00e9", "cafe\u0301"), ("Stra\u00dfe", "STRASSE")])
def test_a_folder_and_a_file_and_other_spellings_of_letters_are_one_too(
    kit: Any, here: Any, names: tuple[str, str]
) -> None:
    with pytest.raises(RefusedError, match="are one file"):
        PROVIDERS["clone"].open(here.store, here.folder(), commit(kit, here, *names))


def test_folders_of_two_spellings_are_one_folder_and_lose_nothing(kit: Any, here: Any) -> None:
    tree = PROVIDERS["clone"].open(here.store, here.folder(), commit(kit, here, "Docs/a", "docs/b"))

    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("?")) == ["Docs/a", "docs/b"]


def test_where_the_disk_tells_them_apart_nobody_is_refused(kit: Any, here: Any) -> None:
    made = commit(kit, here, "A", "a")
    (here.store.git_dir / OTHER_CASE).unlink()

    assert sorted(path.name for path in PROVIDERS["clone"].open(here.store, here.folder(), made).glob("?")) == [
        "A",
        "a",
    ]
