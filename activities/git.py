"""The only door to git: GitPython's command layer, with bytes in and out and a scrubbed environment."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # a missing git is refused with a hint, not by a failing import
import git

SAFE_CONFIG = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.splitIndex=false",
    "-c", "core.untrackedCache=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "advice.detachedHead=false",
    "-c", "protocol.file.allow=always",
)  # fmt: skip
"""No hook, monitor or background process of anybody runs because `orch` called git; indexes are plain files."""

IDENTITY = {
    "GIT_AUTHOR_NAME": "orch",
    "GIT_AUTHOR_EMAIL": "orch@localhost",
    "GIT_COMMITTER_NAME": "orch",
    "GIT_COMMITTER_EMAIL": "orch@localhost",
}
"""The author of internal commits, so that no identity needs to be configured."""


_UNRELATED = (
    "GIT_PYTHON_", "GIT_SSL_", "GIT_HTTP_", "GIT_ASKPASS", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
"""Variables of GitPython, of git's ways to other hosts, of programs for people at a terminal, and where the settings
of this user and host lie."""

OVERDUE = 124
"""What `timeout` ends with when it has ended a command."""

_PIPE = -1
"""`subprocess.PIPE`; that module itself is for `processes.py` alone."""


class GitError(Exception):
    """A git command failed.

    Attributes:
        status: its exit status.
        stderr: what it said, decoded leniently.
    """

    def __init__(self, args: tuple[str, ...], status: int, stderr: str) -> None:
        super().__init__(f"git {' '.join(args)}: exit {status}: {stderr.strip()}")
        self.status = status
        self.stderr = stderr.strip()

    @property
    def overdue(self) -> bool:
        """Whether it took longer than it may."""
        return self.status == OVERDUE


@dataclass(frozen=True)
class Talk:
    """A git command that answers one question after the other."""

    args: tuple[str, ...]
    stdin: IO[bytes]
    stdout: IO[bytes]

    def ask(self, question: bytes) -> bytes:
        """Send a question and return the first line of the answer; more may be read on."""
        self.send(question)
        return self.hear()

    def send(self, question: bytes) -> None:
        """Send a question; one to a command that has ended is noticed by who hears no answer."""
        with suppress(BrokenPipeError):
            self.stdin.write(question)
            self.stdin.flush()

    def hear(self) -> bytes:
        """The next line of the answer, without its newline."""
        if not (line := self.stdout.readline()):
            raise GitError(self.args, 128, "it ended before it answered")
        return line.removesuffix(b"\n")


@dataclass(frozen=True)
class Git:
    """Git in one place: a folder to stand in, and the variables that say which repository is meant.

    Attributes:
        cwd: where git is started.
        env: variables added to every call, such as GIT_DIR, GIT_WORK_TREE or GIT_INDEX_FILE.
        prefix: a program and its arguments that become git, in a place of their own.
    """

    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()

    def at(self, cwd: Path) -> Git:
        """The same repository from another folder."""
        return replace(self, cwd=cwd)

    def with_env(self, **env: str | Path) -> Git:
        """The same place with more variables."""
        return replace(self, env={**self.env, **{name: str(value) for name, value in env.items()}})

    def run(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Run `git ARGS` and return its standard output; raise GitError when it exits non-zero."""
        status, out, err = self.attempt(*args, stdin=stdin)
        if status:
            raise GitError(args, status, err)
        return out

    def text(self, *args: str, stdin: bytes | None = None) -> str:
        """`run`, decoded and stripped: for ids and other plain answers, never for path names."""
        return self.run(*args, stdin=stdin).decode().strip()

    def ok(self, *args: str) -> bool:
        """Whether the command exits 0."""
        return self.attempt(*args)[0] == 0

    def attempt(self, *args: str, stdin: bytes | None = None) -> tuple[int, bytes, str]:
        """Run `git ARGS` and return (status, stdout, stderr) whatever the status is."""
        if not self.cwd.is_dir():  # GitPython would start git wherever this process stands
            return 128, b"", f"no such folder: {self.cwd}"
        argv, env = self._command(args)
        with _stream(stdin) as stream:
            status, out, err = git.Git(str(self.cwd)).execute(
                argv,
                istream=stream,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env=env,
            )
        return int(status), out if isinstance(out, bytes) else b"", err if isinstance(err, str) else ""

    def lines(self, *args: str, stdin: bytes | None = None) -> list[bytes]:
        """Run a command with `-z` output and return its NUL-separated records."""
        return [record for record in self.run(*args, stdin=stdin).split(b"\0") if record]

    @contextmanager
    def talk(self, *args: str) -> Iterator[Talk]:
        """Keep `git ARGS` running for questions and answers; it ends with the block."""
        argv, env = self._command(args)
        started: Any = git.Git(str(self.cwd)).execute(argv, istream=_PIPE, as_process=True, env=env)
        with started.proc as process:
            yield Talk(args, process.stdin, process.stdout)

    def _command(self, args: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        env = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **IDENTITY, **self.env}
        return [*_unset(env), *self.prefix, "git", *SAFE_CONFIG, *args], env


def _unset(ours: Mapping[str, str]) -> list[str]:
    """Drop inherited GIT_* variables (GIT_DIR of an outer hook, an outer agent's index), never our own.

    It costs a process start, so those stay that say nothing of repositories.
    """
    names = sorted(name for name in os.environ if name.startswith("GIT_") and name not in ours)
    names = [name for name in names if not name.startswith(_UNRELATED)]
    return ["env", *(part for name in names for part in ("-u", name))] if names else []


def _stream(data: bytes | None) -> Any:
    stream = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    stream.write(data or b"")
    stream.seek(0)
    return stream
