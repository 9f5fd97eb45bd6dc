"""The one door to processes: commands as values, short helpers, long-lived children, their certain end."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..workflows.model.exit import Exit, ExitKind
from . import supervisor

OUTPUT_CAP = 8 << 20
"""Bytes kept of each stream of a short command; the rest is read and dropped."""

PASSED = frozenset({"PATH", "LANG", "LANGUAGE", "TERM", "USER", "LOGNAME", "SHELL", "TZ"})
"""Variables that every child gets, besides LC_* and those that ORCH_PASS_ENV names."""

NEVER_PASSED = re.compile(r"GIT_|CLAUDECODE|CLAUDE_CODE_ENTRYPOINT$")
"""Variables of an outer git command or agent session, which would misdirect an inner one."""

ANSWER_S = 60.0
"""How long a host's program may take to tell its version or show what it can: a busy host is slow, not without it."""

KILL_PATIENCE_S = 10.0
"""How long a killed process may take to vanish (it may hang in the kernel)."""

_SENSITIVE = r"(?:token(?!s)|secret|passw(?:or)?d|api[-_]?key|credential|authorization)"
_SECRETS = re.compile(
    rf"""(?ix) (?P<kept> --?[\w-]* {_SENSITIVE} [\w-]* [\s=] ['"]?
                       | {_SENSITIVE} \w* \s* [=:] \s* (?:bearer\s+)?
                       | ://[^/\s:@]*: ) [^\s'"@]+
             | \b (?:sk|ghp|gho|xox[bp]) [-_] [\w-]{{8,}}"""
)

_Stream = int | IO[bytes]

start_ticks = supervisor.start_ticks


@dataclass(frozen=True)
class Command:
    """What is to run: a value before it is a process.

    Attributes:
        argv: the program and its arguments.
        cwd: where it starts; must exist.
        env: its whole environment.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]

    def shown(self) -> str:
        """The command as a shell line with secrets blotted out."""
        return _SECRETS.sub(lambda found: f"{found['kept'] or ''}***", shlex.join(self.argv))


@dataclass(frozen=True)
class Completed:
    """A short command that ended, with at most `OUTPUT_CAP` bytes of each stream."""

    exit: Exit
    stdout: bytes = b""
    stderr: bytes = b""


def run(command: Command, *, timeout_s: float, stdin: bytes = b"") -> Completed:
    """Run a short command to its end; what it leaves running is killed, and so is it after `timeout_s`."""
    with tempfile.TemporaryFile() as feed:
        feed.write(stdin)
        feed.seek(0)
        try:
            process = _spawn(command, feed, subprocess.PIPE, subprocess.PIPE)
        except (OSError, ValueError) as error:
            return Completed(Exit(kind=ExitKind.NOT_STARTED, detail=str(error)))
    with process:
        try:
            stdout, stderr = _collect(process, time.monotonic() + timeout_s)
            code = process.poll()
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    ended = Exit(kind=ExitKind.TIMED_OUT, detail=f"{timeout_s:g} s") if code is None else exit_of(code)
    return Completed(ended, bytes(stdout), bytes(stderr))


def run_here(command: Command) -> Exit:
    """Run a command with this process's own streams and terminal; interrupts are the command's. Main thread only."""
    ours = {number: signal.signal(number, _leave_to_child) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        with subprocess.Popen(command.argv, cwd=command.cwd, env=command.env) as process:  # noqa: S603
            try:
                return exit_of(process.wait())
            except BaseException:
                process.terminate()
                raise
    except (OSError, ValueError) as error:
        return Exit(kind=ExitKind.NOT_STARTED, detail=str(error))
    finally:
        _take_terminal()
        for number, handler in ours.items():
            signal.signal(number, handler)


def _leave_to_child(number: int, frame: object) -> None:
    """Nothing: unlike an ignored signal, one with a handler has its usual effect in a program that is started."""


def _take_terminal() -> None:
    """Be the terminal's foreground again: a shell that managed jobs leaves it to a group that is gone."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else who is in the background is stopped by asking
    with suppress(OSError):
        os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, before)


def _spawn(
    command: Command, stdin: _Stream, stdout: _Stream, stderr: _Stream, pass_fds: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own: no terminal, and one group to signal."""
    return subprocess.Popen(  # noqa: S603
        command.argv,
        cwd=command.cwd,
        env=command.env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        start_new_session=True,
    )


def exit_of(code: int) -> Exit:
    """The exit for a return code as `subprocess` gives it: negative for a signal."""
    if code < 0:
        return Exit(kind=ExitKind.SIGNALLED, number=-code)
    return Exit(kind=ExitKind.FAILED, number=code) if code else Exit(kind=ExitKind.OK)


def _collect(process: subprocess.Popen[bytes], until: float) -> list[bytearray]:
    """Read both streams until `until` or the end of the process, also when a grandchild keeps them open."""
    streams = [bytearray(), bytearray()]
    with selectors.DefaultSelector() as selector:
        for pipe, kept in zip(filter(None, (process.stdout, process.stderr)), streams, strict=True):
            selector.register(pipe.fileno(), selectors.EVENT_READ, kept)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            events = selector.select(min(left, 0.05))
            for key, _ in events:
                data = os.read(key.fd, 1 << 16)
                key.data.extend(data[: OUTPUT_CAP - len(key.data)])
                if not data:
                    selector.unregister(key.fd)
            if not events and process.poll() is not None:
                return streams
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))
    return streams


def spawn_detached(command: Command, *, log: Path, pass_fds: tuple[int, ...] = ()) -> int:
    """Start a process that outlives this one, both its streams appended to `log`; return its pid.

    Raises:
        OSError: it cannot be started.
    """
    with log.open("ab") as stream:
        process = _spawn(command, subprocess.DEVNULL, stream, stream, pass_fds)
    threading.Thread(target=process.wait, daemon=True, name=f"reap-{process.pid}").start()
    return process.pid


def alive(pid: int, start_ticks: int) -> bool:
    """Whether this very process still runs, not a later one with its number; a zombie does not."""
    return supervisor.start_ticks(pid) == start_ticks


def send(pid: int, start_ticks: int, number: int) -> bool:
    """Send a signal to this very process; False when it is gone or not ours."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        same = alive(pid, start_ticks)  # asked after the handle was taken: it cannot be a later process
        if same:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return same


def end(pid: int, start_ticks: int, *, grace_s: float = 5.0) -> None:
    """End a process, its session and its descendants: INT, TERM, KILL; return when they are gone."""
    known = {pid: start_ticks}

    def family() -> dict[int, int]:
        roots = {pid for pid, ticks in known.items() if alive(pid, ticks)}
        known.update(_identified([*supervisor.below(roots), *_session_of(pid)]))
        return known

    if alive(pid, start_ticks):
        end_all(family, ((signal.SIGINT, grace_s), (signal.SIGTERM, grace_s)))


def end_marked(name: str, value: str) -> None:
    """Kill every process that was started with NAME=VALUE in its environment, and its descendants."""

    def family() -> dict[int, int]:
        roots = {pid for pid, found in marked(name).items() if found == value} - {os.getpid()}
        return _identified([*roots, *supervisor.below(roots)])

    end_all(family, ())


def marked(name: str) -> dict[int, str]:
    """The processes of this user that were started with a variable NAME, and its value."""
    found = {}
    prefix = f"{name}=".encode()
    for pid in supervisor.pids():
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if entry.startswith(prefix):
                    found[pid] = os.fsdecode(entry[len(prefix) :])
    return found


def end_all(family: Callable[[], dict[int, int]], ladder: tuple[tuple[int, float], ...]) -> None:
    """Send each signal of a ladder to all of a family (pid → start ticks), then KILL until none is left."""
    for number, grace_s in ladder:
        for pid, ticks in family().items():
            send(pid, ticks, number)
        until = time.monotonic() + grace_s
        while time.monotonic() < until and _left(family):
            time.sleep(0.02)
    until = time.monotonic() + KILL_PATIENCE_S
    while time.monotonic() < until and (left := _left(family)):
        for pid, ticks in left.items():
            send(pid, ticks, signal.SIGKILL)
        time.sleep(0.01)


def _left(family: Callable[[], dict[int, int]]) -> dict[int, int]:
    return {pid: ticks for pid, ticks in family().items() if alive(pid, ticks)}


def _identified(pids: list[int]) -> dict[int, int]:
    return {pid: ticks for pid in pids if (ticks := supervisor.start_ticks(pid)) is not None}


def _session_of(leader: int) -> list[int]:
    members = []
    for pid in supervisor.pids():
        with suppress(OSError):
            if os.getsid(pid) == leader:
                members.append(pid)
    return members


def scrubbed_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """A small environment for a child: an allow-list from ours, then `extra`.

    Allowed are `PASSED`, LC_* and the names in ORCH_PASS_ENV (a comma list); never GIT_* nor an outer agent's.
    """
    named = {name.strip() for name in os.environ.get("ORCH_PASS_ENV", "").split(",")}
    allowed = {
        name: value
        for name, value in os.environ.items()
        if (is_usual(name) or name in named) and not NEVER_PASSED.match(name)
    }
    return {**allowed, **extra}


def is_usual(name: str) -> bool:
    """Whether a variable is passed to children without being named."""
    return name in PASSED or name.startswith("LC_")
