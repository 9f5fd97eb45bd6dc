"""What the demonstrations share: commands with their errors told, a release from the package index, commits."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rich.console import Console

BIN = Path(sys.executable).parent
console = Console(soft_wrap=True, highlight=False)


class DemoError(Exception):
    """Something outside the demo went wrong; the text says what."""


def call(*argv: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command quietly and return its stdout; DemoError with its stderr when it fails."""
    done = subprocess.run([*map(str, argv)], cwd=cwd, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise DemoError(f"{shlex.join(map(str, argv))} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def orch(*argv: str | Path, quiet: bool = False) -> int:
    """Show an orch command, run it on this terminal (`quiet`: its progress only) and return its exit status."""
    words = [*map(str, argv)]
    console.print(f"\n[bold]$ orch {shlex.join(words)}[/bold]")
    stdout = subprocess.DEVNULL if quiet else None
    return subprocess.run([BIN / "orch", *words], stdout=stdout, check=False).returncode  # noqa: S603


def sdist(package: str, version: str, cache: Path) -> Path:
    """The unpacked source distribution of a version, taken from the package index once."""
    root = cache / f"{package}-{version}"
    if root.is_dir():
        return root
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f"{root.name}.tar.gz"
    if not archive.is_file():
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package)
        call(*pip, "--dest", cache, f"{package}=={version}")
    with tempfile.TemporaryDirectory(dir=cache) as aside, tarfile.open(archive) as tar:
        tar.extractall(aside, filter="data")
        (Path(aside) / root.name).rename(root)
    return root


def commit(repo: Path, message: str) -> None:
    """Commit everything, whatever the user's own git settings and hooks are."""
    settings = (
        "user.name=orch demo",
        "user.email=demo@example.invalid",
        "commit.gpgsign=false",
        "core.hooksPath=",
    )
    git = ("git", *(word for setting in settings for word in ("-c", setting)))
    call(*git, "add", "--all", cwd=repo)
    call(*git, "commit", "--quiet", "--message", message, cwd=repo)


def head(repo: Path) -> str:
    """The commit that is checked out."""
    return call("git", "rev-parse", "HEAD", cwd=repo).strip()
