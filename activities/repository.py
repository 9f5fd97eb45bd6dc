"""The user's repository: looked at, never written to."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..workflows.errors import RefusedError
from .changes import display
from .git import Git

MIN_GIT = (2, 34)
"""`git add --sparse` and absolute `rev-parse` paths."""

_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
"""What a file in the git directory says about an operation in progress; a rebase also leaves the others' files."""


@dataclass(frozen=True)
class Repository:
    """A working tree and its git directories, all as real paths.

    Attributes:
        top: the top of the working tree.
        git_dir: its own git directory (of a linked worktree: the entry under `worktrees/`).
        common_dir: the git directory shared by all its worktrees.
        head: the commit HEAD names; None on an unborn branch.
        branch: the branch's short name; empty on a detached HEAD.
        operation: "" or what is in progress: merge, rebase, cherry-pick, revert or bisect.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    head: str | None
    branch: str
    operation: str

    @property
    def git(self) -> Git:
        """Git at the top of the working tree, for calls that only read."""
        return Git(self.top)

    @property
    def objects(self) -> Path:
        """Its object directory."""
        return self.common_dir / "objects"


def inspect(path: Path) -> Repository:
    """Find the repository that holds `path`; raise RefusedError, with the mend, when it cannot be used."""
    check_git()
    folder = _real_folder(path)
    git = Git(folder)
    _check_working_tree(git, folder)
    top, git_dir, common_dir = _paths(git, "--show-toplevel", "--git-dir", "--git-common-dir")
    return Repository(
        top=top,
        git_dir=git_dir,
        common_dir=common_dir,
        head=_answer(git, "rev-parse", "--verify", "-q", "HEAD") or None,
        branch=_answer(git, "symbolic-ref", "--short", "-q", "HEAD"),
        operation=_operation(git_dir),
    )


def check_git() -> None:
    """Raise RefusedError when there is no git, or one too old."""
    program = shutil.which("git")
    if program is None:
        raise RefusedError("git is not installed", hint=f"install git {_dotted(MIN_GIT)} or newer")
    version = _version(program, Path(program).stat().st_mtime_ns)
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < MIN_GIT:
        raise RefusedError(f"{version} is too old", hint=f"install git {_dotted(MIN_GIT)} or newer")


@lru_cache(maxsize=4)
def _version(program: str, time: int) -> str:  # noqa: ARG001 - what this program said, until it is replaced
    return Git(Path("/")).text("version")


def _real_folder(path: Path) -> Path:
    try:
        folder = path.resolve(strict=True)
    except OSError as error:
        raise RefusedError(f"no such folder: {display(path)}", hint="change to a folder that exists") from error
    if not folder.is_dir():
        raise RefusedError(f"not a folder: {display(path)}", hint="name the folder of a git repository")
    return folder


def _check_working_tree(git: Git, folder: Path) -> None:
    status, out, err = git.attempt("rev-parse", "--is-bare-repository", "--is-inside-work-tree")
    where = display(folder)
    if "dubious ownership" in err:
        raise RefusedError(
            f"the repository at {where} belongs to another user",
            hint="run as its owner, or `git config --global --add safe.directory` its path yourself",
        )
    if status:
        hint = "change to a git repository, or make one with `git init`"
        raise RefusedError(f"not a git repository: {where}" if "not a git" in err else f"{where}: {err}", hint=hint)
    bare, inside = out.split()
    if inside != b"true":
        what = "a bare repository" if bare == b"true" else "the inside of a git directory"
        raise RefusedError(f"{where} is {what}: there is no working tree", hint="change to one of its working trees")


def _answer(git: Git, *args: str) -> str:
    """What the command answers; empty when it fails."""
    status, out, _ = git.attempt(*args)
    return "" if status else out.decode("utf-8", "surrogateescape").strip()


def _paths(git: Git, *questions: str) -> list[Path]:
    """The answers to all, asked at once; one by one where a path has a newline in it."""
    ask = ("rev-parse", "--path-format=absolute")
    answers = git.run(*ask, *questions).removesuffix(b"\n").split(b"\n")
    if len(answers) != len(questions):
        answers = [git.run(*ask, question).removesuffix(b"\n") for question in questions]
    return [Path(os.fsdecode(answer)).resolve() for answer in answers]


def _operation(git_dir: Path) -> str:
    return next((name for file, name in _OPERATIONS.items() if (git_dir / file).exists()), "")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
