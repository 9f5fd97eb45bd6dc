"""What both contenders work on: a repository of a given size, agents that do nothing but write one file, one check."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ANSWER = "answer.txt"
"""The file every agent writes, each with its own number, so that no two trees are alike."""

CHECK = f"test -s {ANSWER}"

AGENTS = {
    "no-op": f"echo $ORCH_CANDIDATE >{ANSWER}",
    "5 s": f"sleep 5; echo $ORCH_CANDIDATE >{ANSWER}",
}
"""Shell lines by name."""

FOLDER_FILES, FILE_LINES = 20, 40
RACY_S = 1.1
"""Git reads files again that are as young as its index; no user's tree is."""


@dataclass(frozen=True)
class Case:
    """One cell of the matrix."""

    repo: Path
    files: int
    agent: str
    count: int


def make_repository(path: Path, files: int) -> Path:
    """A packed repository of small text files on one commit, its index not younger than they are."""
    for number in range(files):
        file = path / f"pkg{number // FOLDER_FILES:03}" / f"module{number:05}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"value_{line} = {number * line}  # line {line}\n" for line in range(FILE_LINES)))
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "-A")
    git(path, "-c", "user.name=A User", "-c", "user.email=user@example.org", "commit", "-q", "-m", "first")
    git(path, "gc", "-q")
    time.sleep(RACY_S)
    git(path, "read-tree", "HEAD")
    git(path, "update-index", "-q", "--refresh")
    return path


def reset(repo: Path) -> None:
    """Take the promoted answer away; fails when it is not there, as then nobody won."""
    (repo / ANSWER).unlink()
    git(repo, "diff", "--quiet", "HEAD")


def git(folder: Path, *args: str) -> None:
    """Run git in a folder; raise when it fails."""
    scrubbed = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "-c", "gc.auto=0", *args], cwd=folder, env=scrubbed, check=True, capture_output=True)
