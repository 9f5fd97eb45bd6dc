"""Boxes by bubblewrap: namespaces of the kernel's, no daemon, a few milliseconds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .. import processes
from . import Access, Box, Flaw, Mount

PROGRAM = "bwrap"
MIN_VERSION = (0, 4)

KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi", "/proc/acpi")
"""What bubblewrap leaves to root without capabilities: a setting like core_pattern runs programs on the host."""

OPTIONS = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *(word for path in KERNEL for word in ("--ro-bind-try", path, path)),
)
PRIVATE = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
SAFE = ("--die-with-parent", "--cap-drop", "ALL")
"""Everything dies with the outer process. Without capabilities, or root could mount everything writable again.

`--new-session` is left out: processes started by `orch` have a session without a terminal already.
"""

USER_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000 or "
    "kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
)

_NOT_EXECUTED = re.compile(r"bwrap: (?:execvp )?([^\n]+)\n?")
_NO_NAMESPACE = re.compile(r"(?i)namespace|uid map|loopback|setting up")


class Bubblewrap:
    """The launcher of choice."""

    name = "bwrap"
    image = ""

    def wrap(self, argv: tuple[str, ...], box: Box) -> tuple[str, ...]:
        """The command in the box; what does not exist on this host is left out."""
        words = [word for mount in box.mounts for word in _mount(mount)]
        folders = [m.path for m in reversed(box.mounts) if m.access is Access.HIDDEN and m.path.is_dir()]
        closed = [word for folder in folders for word in ("--remount-ro", str(folder))]
        network = () if box.network else ("--unshare-net",)
        return (PROGRAM, *OPTIONS, *words, *closed, *PRIVATE, *SAFE, *network, "--", *argv)

    def version(self) -> str:
        """`bubblewrap 0.8.0`."""
        if shutil.which(PROGRAM) is None:
            return ""
        command = processes.Command((PROGRAM, "--version"), Path("/"), processes.scrubbed_environment({}))
        return processes.run(command, timeout_s=processes.ANSWER_S).stdout.decode(errors="replace").strip()

    def flaw(self) -> Flaw | None:
        """Missing or too old."""
        mend, version = f"install bubblewrap {'.'.join(map(str, MIN_VERSION))} or newer", self.version()
        if not version:
            missing = shutil.which(PROGRAM) is None
            return Flaw(f"{PROGRAM} is not installed" if missing else f"{PROGRAM} does not tell its version", mend)
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        return Flaw(f"{version} is too old", mend) if numbers < MIN_VERSION else None

    def mend(self, said: str) -> str:
        """Nearly always user namespaces are forbidden."""
        return USER_NAMESPACES if _NO_NAMESPACE.search(said) else "see what bubblewrap says, or give --no-sandbox"

    def not_executed(self, stderr: str) -> str:
        """Its own complaint is one line."""
        found = _NOT_EXECUTED.fullmatch(stderr)
        return found[1] if found else ""


def _mount(mount: Mount) -> tuple[str, ...]:
    path, source = str(mount.path), str(mount.source)
    match mount.access:
        case Access.HIDDEN if not mount.path.is_dir():
            return ("--dev-bind", "/dev/null", path)
        case Access.HIDDEN | Access.SCRATCH:
            return ("--tmpfs", path)
        case Access.LINK:
            return ("--symlink", source, path)
        case Access.READ:
            return ("--ro-bind-try", source, path)
        case Access.WRITE:
            return ("--bind-try", source, path)
        case Access.DEVICE:
            return ("--dev-bind-try", source, path)
