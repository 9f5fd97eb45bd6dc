"""What no boxed command may be able to do, each tried: a program of the standard library alone.

`python -I -S acts.py FACTS` does every act once and prints, as one JSON object, what each of them saw or None. What an
act was to write is judged from outside. FACTS is JSON: where the bait of each act lies.
"""

# ruff: noqa: PTH105, PTH110, PTH120, PTH123, PTH208
from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CLONE_NEWUSER, CLONE_NEWNS, MNT_DETACH = 0x10000000, 0x00020000, 2
SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs",
)  # fmt: skip

WRITTEN = "written from the sandbox\n"


def read(path: str) -> str:
    """What a file holds."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path: str) -> None:
    """Put another text into a file, in place or as a new file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(WRITTEN)


def replace(path: str) -> None:
    """Put another file in a file's place."""
    write(f"{path}.new")
    os.replace(f"{path}.new", path)


def connect(address: Any) -> str:
    """Reach a socket, by path or by host and port."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address if isinstance(address, str) else tuple(address))
        return "reached"


def see(pid: int) -> str:
    """What a process of the host was started with."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return "canary" if b"canary" in file.read() else ""


def end(pid: int) -> None:
    """Signal a process of the host."""
    os.kill(pid, signal.SIGTERM)


def uncover(path: str) -> str:
    """Unmount what hides a file, with the rights that a user namespace of its own gives."""
    libc = ctypes.CDLL(None)
    child = os.fork()
    if not child:
        libc.unshare(CLONE_NEWUSER | CLONE_NEWNS)
        for folder in _parents(path):
            libc.umount2(folder.encode(), MNT_DETACH)
        os._exit(7 if os.path.exists(path) else 0)
    return "uncovered" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 else ""


def remount(path: str) -> None:
    """Make everything writable again, then write."""
    libc = ctypes.CDLL(None)
    for folder in ("/", *_parents(path)):
        libc.mount(None, folder.encode(), None, 32, None)  # MS_REMOUNT
        libc.mount(None, folder.encode(), None, 32 | 4096, None)  # the same of this one mount
    write(path)


def kernel(_: None) -> str:
    """Open a setting of the kernel for writing: some of them run programs as root."""
    return next((path for path in SETTINGS if _opens(path)), "")


def devices(_: None) -> str:
    """A disk, memory or another device that is not harmless."""
    for name in os.listdir("/dev"):
        mode = os.lstat(f"/dev/{name}").st_mode
        if stat.S_ISBLK(mode) or name in {"mem", "kmem", "kmsg", "port", "kvm", "fuse"}:
            return name
    return ""


def around(path: str) -> str:
    """Read a hidden file by way of the root folders of the processes that are there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        inside = f"/proc/{pid}/root{path}"
        if os.path.exists(inside) and read(inside) != WRITTEN:
            return f"process {pid}"
    return ""


def _parents(path: str) -> list[str]:
    found = []
    while (path := os.path.dirname(path)) != "/":
        found.append(path)
    return found


def _opens(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True


ACTS: dict[str, Callable[[Any], str | None]] = {
    act.__name__: act for act in (read, write, replace, connect, see, end, uncover, remount, kernel, devices, around)
}


def main(facts: list[list[Any]]) -> None:
    """Do the acts in order: each is a name of `ACTS` and its bait."""
    said = []
    for name, bait in facts:
        try:
            said.append(ACTS[name](bait) or None)
        except OSError:
            said.append(None)
    print(json.dumps(said))  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
