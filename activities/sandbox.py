"""The sandbox: a command becomes a longer command that cannot write where it must not (bubblewrap)."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import processes

TMP = Path("/tmp")  # noqa: S108 - the folder itself is meant, nothing is created in it

_NOT_EXECUTED = re.compile(r"bwrap: (?:execvp )?([^\n]+)\n?")

PROBE = """
touch "$1/in" || { echo "writing inside is refused"; exit 1; }
touch "$2/out" 2>/dev/null && { echo "writing outside is not refused"; exit 1; }
[ "$(readlink /proc/self/ns/net)" != "$3" ] || { echo "the network is shared"; exit 1; }
"""


@dataclass(frozen=True)
class Fence:
    """What a fenced command may do; it may read everything.

    Attributes:
        writable: folders and files it may write below; what does not exist is left out.
        network: whether it may reach the network; without, loopback of its own is up.
        tmp: a private folder it may write, seen as /tmp too unless something it may write lies there.
    """

    writable: tuple[Path, ...]
    network: bool
    tmp: Path | None


def wrap(argv: tuple[str, ...], fence: Fence | None) -> tuple[str, ...]:
    """The command inside the fence; without one, the command itself.

    It keeps its working directory, environment, streams, user and process group; all of it dies with the outer
    process. `--new-session` is left out, because processes started by `orch` have a session without a terminal
    already. Capabilities are dropped, or root could mount everything writable again.
    """
    if fence is None:
        return argv
    options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    writable = [Path(os.path.realpath(path)) for path in fence.writable]  # a mount point must not be a link
    if fence.tmp is not None:
        tmp = Path(os.path.realpath(fence.tmp))
        writable.append(tmp)
        if not any(path.is_relative_to(TMP) for path in writable):
            options += ["--bind", str(tmp), str(TMP)]
    for path in writable:
        options += ["--bind-try", str(path), str(path)]
    options += ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    if not fence.network:
        options += ["--unshare-net"]
    return ("bwrap", *options, "--", *argv)


def not_executed(stderr: str) -> str:
    """Why a fenced command never ran, when nothing but the sandbox's own complaint was printed; else empty."""
    found = _NOT_EXECUTED.fullmatch(stderr)
    return found[1] if found else ""


@functools.cache
def probe() -> str:
    """Why the sandbox does not work on this host, shown by trying; empty when it does."""
    with tempfile.TemporaryDirectory() as inside, tempfile.TemporaryDirectory() as outside:
        script = ("sh", "-c", PROBE, "sh", inside, outside, str(Path("/proc/self/ns/net").readlink()))
        argv = wrap(script, Fence(writable=(Path(inside),), network=False, tmp=None))
        command = processes.Command(argv, Path(inside), processes.scrubbed_environment({}))
        done = processes.run(command, timeout_s=10)
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    return "" if done.exit.ok else f"{said or 'the sandbox failed'} ({done.exit})"
