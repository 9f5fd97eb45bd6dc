"""Faults of git that users have met and that no other test shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orch.activities.carry import carry
from orch.activities.workspaces.clone import CloneProvider
from orch.workflows.errors import RefusedError


@pytest.fixture
def repo(make_repo: Any, tmp_path: Path) -> Path:
    path: Path = make_repo(tmp_path / "project")
    return path


@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_commit_of_an_agent_runs_no_hook_wherever_the_user_keeps_them(
    scope: str, kit: Any, repo: Path, bench: Any, tmp_path: Path
) -> None:
    """G29: the user's hooks are of another checkout."""
    kit.write(tmp_path / "hooks", {"pre-commit": f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n"})
    (tmp_path / "hooks/pre-commit").chmod(0o755)
    kit.git(repo, "config", scope, "core.hooksPath", str(tmp_path / "hooks"))
    here = bench(repo)
    here.provider = CloneProvider()
    tree = here.open()
    kit.write(tree, {"new": "n"})

    kit.commit_all(tree)

    assert here.snapshot().paths == ("new",)
    assert not (tmp_path / "ran").exists()


def test_names_that_differ_in_case_alone_are_two_files_whatever_the_setting_says(
    kit: Any, repo: Path, bench: Any
) -> None:
    """G35."""
    kit.git(repo, "config", "core.ignorecase", "true")
    for name in ("Case.txt", "case.txt"):
        blob = kit.git(repo, "hash-object", "-w", "--stdin", stdin=name.encode())
        kit.git(repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    kit.git(repo, "commit", "-q", "-m", "two")
    kit.git(repo, "checkout", "-q", "--", ".")
    here = bench(repo)
    tree = here.open()
    kit.write(tree, {"CASE.txt": "third"})

    snapshot = here.snapshot()

    assert snapshot.paths == ("CASE.txt",)
    files = here.files(snapshot.commit)
    assert (files["Case.txt"], files["case.txt"], files["CASE.txt"]) == (b"Case.txt", b"case.txt", b"third")


def test_index_that_cannot_be_read_is_named_as_the_cause(repo: Path, bench: Any) -> None:
    """G46."""
    (repo / ".git/index").write_bytes(b"no index at all")

    with pytest.raises(RefusedError, match=r"the working tree cannot be recorded: .*index file"):
        bench(repo).baseline()


def test_carried_environment_is_its_copys_own(kit: Any, repo: Path, tmp_path: Path) -> None:
    """G47, M12: programs of a copied environment install into the copy, and import from it, wherever it is moved."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", repo / ".venv"], check=True)
    site = next((repo / ".venv/lib").glob("python*/site-packages"))
    shown = "#!{}\nimport sys, own\nprint(sys.prefix, own.__file__)\n"
    kit.write(
        repo, {".venv/bin/tool": shown.format(repo / ".venv/bin/python"), "src/own.py": "", "other": "#!/bin/sh\n"}
    )
    (repo / ".venv/bin/tool").chmod(0o755)
    (site / "own.pth").write_text(f"{repo}/src\n/elsewhere\nimport sys\n")
    (tmp_path / "made").mkdir()
    carry(repo, tmp_path / "made", [Path(".venv"), Path("src")])
    (tmp_path / "made").rename(tmp_path / "moved")
    copy = tmp_path / "moved"

    direct = subprocess.run([copy / ".venv/bin/tool"], capture_output=True, text=True, check=True)
    active = subprocess.run(
        ["bash", "-c", ". .venv/bin/activate && tool"], cwd=copy, capture_output=True, text=True, check=True
    )

    assert direct.stdout == f"{copy}/.venv {copy}/src/own.py\n"
    assert active.stdout == direct.stdout
    assert (repo / ".venv/bin/tool").read_text() == shown.format(repo / ".venv/bin/python")
    assert (copy / ".venv/bin/tool").stat().st_mode & 0o111
