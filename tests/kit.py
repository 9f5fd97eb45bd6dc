"""Real repositories to test on, and a fingerprint that shows whether anything of one changed.

Test modules reach these by the fixtures of `conftest.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

AUTHOR = {
    "GIT_AUTHOR_NAME": "A User",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_AUTHOR_DATE": "2024-01-02T03:04:05Z",
    "GIT_COMMITTER_NAME": "A User",
    "GIT_COMMITTER_EMAIL": "user@example.org",
    "GIT_COMMITTER_DATE": "2024-01-02T03:04:05Z",
}
"""The user's identity and clock in every commit a test makes."""


def git(folder: Path, *args: str, stdin: bytes | None = None) -> str:
    """Run git as the user would, in a folder; raise with what it said when it fails."""
    command = ["git", "-c", "protocol.file.allow=always", *args]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **AUTHOR}, input=stdin, capture_output=True, check=False
    )
    assert not done.returncode, f"git {args}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, by their paths in the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_repo(path: Path, files: Mapping[str, str | bytes] | None = None, *options: str) -> Path:
    """Make a repository on branch `main` with one commit of the files (default: `a.txt`); `{}` for no commit."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", "-b", "main", "--template=", *options)
    files = {"a.txt": "one\n"} if files is None else files
    write(path, files)
    if files:
        git(path, "add", "-A", "-f")
        git(path, "commit", "-q", "-m", "first")
    return path


def commit_all(path: Path, message: str = "more") -> str:
    """Commit everything in the working tree; return the commit."""
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", message)
    return git(path, "rev-parse", "HEAD")


def fingerprint(repo: Path) -> dict[str, str]:
    """All that must stay: HEAD, refs, index, config, hooks, stash, worktrees, and every file, ignored ones too."""
    env = {"GIT_OPTIONAL_LOCKS": "0", **os.environ}
    found = {}
    for question in ("for-each-ref", "stash list", "worktree list --porcelain", "fsck --no-dangling"):
        done = subprocess.run(["git", *question.split()], cwd=repo, env=env, capture_output=True, check=False)
        found[question] = (done.stdout + done.stderr).decode("utf-8", "replace")
    common = Path(repo, git(repo, "rev-parse", "--git-common-dir"))
    own = Path(repo, git(repo, "rev-parse", "--git-dir"))
    kept = [own / "HEAD", own / "index", common / "config", common / "info" / "exclude", *common.glob("hooks/*")]
    for path in kept:
        found[f"git:{path.name}"] = _sum(path)
    for folder, folders, names in os.walk(repo):
        if ".git" in folders and Path(folder) == repo:
            folders.remove(".git")
        for name in [*names, *(f for f in folders if Path(folder, f).is_symlink())]:
            path = Path(folder, name)
            found[os.path.relpath(path, repo)] = _sum(path)
    return found


def absent_tests(table: str) -> list[str]:
    """The tests that a table names, `     FILE::NAME` on lines of their own, and that are not there."""
    lines = [line for line in table.splitlines() if "::" in line]
    named = [re.fullmatch(r" {5}(\S+\.py)::(test_\w+)", line) for line in lines]
    tests = Path(__file__).parent
    there = [bool(one and f"def {one[2]}(" in (tests / one[1]).read_text("utf-8")) for one in named]
    return [line for line, found in zip(lines, there, strict=True) if not found]


def _sum(path: Path) -> str:
    """The mode and a hash of a file's content, of a link's target, or just the kind of anything else."""
    if path.is_symlink():
        return f"link {str(path.readlink())!r}"
    if not path.is_file():
        return "special" if path.exists() else "absent"
    return f"{path.stat().st_mode:o} {hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()}"
