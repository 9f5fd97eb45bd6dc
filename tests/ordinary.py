"""Become an ordinary user of another kind of host, then the command: `python -I -S ordinary.py HOST WAYS ARGV…`.

HOST    `plain`; `no-namespaces`; or KIND=FOLDER: a file system of that kind (ramfs, overlay) is mounted there
WAYS    folders, separated by colons, that the user must reach: the interpreter may lie where nobody else can go

Root becomes nobody, everybody else stays who he is. Nothing is seen by any other process.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

NOBODY = 65534
NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18

LIBC = ctypes.CDLL(None, use_errno=True)


def call(function: Callable[..., int], *args: object) -> None:
    """Call the C library; OSError when it fails."""
    if function(*args):
        raise OSError(ctypes.get_errno(), function.__name__)


def mount(kind: str, source: str, target: str, flags: int = 0, options: str = "") -> None:
    """Mount, on a folder that is made where it is missing."""
    Path(target).mkdir(parents=True, exist_ok=True)
    call(LIBC.mount, source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)


def new_users(kinds: int = NEW_USERS) -> None:
    """A user namespace in which everybody stays who he is; root can still become another."""
    ready, told = os.pipe()
    parent, root = os.getpid(), os.getuid() == 0
    if not (child := os.fork()):
        os.read(ready, 1)
        for kind, own in (("uid", os.getuid()), ("gid", os.getgid())):
            if kind == "gid" and not root:
                Path(f"/proc/{parent}/setgroups").write_text("deny")
            Path(f"/proc/{parent}/{kind}_map").write_text("0 0 65535" if root else f"{own} {own} 1")
        os._exit(0)
    call(LIBC.unshare, kinds)
    os.write(told, b"x")
    os.waitpid(child, 0)


def make_way(needed: str) -> None:
    """Let everybody reach a folder that lies below a closed one."""
    parts = needed.split("/")
    above = ["/".join(parts[:number]) for number in range(2, len(parts))]
    if closed := [path for path in above if not Path(path).stat().st_mode & 1]:
        mount("", closed[0], "/mnt", BIND | RECURSIVE)
        mount("tmpfs", "none", closed[0], options="mode=755")
        mount("", "/mnt" + needed[len(closed[0]) :], needed, BIND | RECURSIVE)


def lay(kind: str, folder: str) -> None:
    """Mount a new file system of a kind."""
    options = ""
    if kind == "overlay":
        mount("tmpfs", "none", folder)
        parts = [Path(folder, name) for name in ("lower", "upper", "work")]
        for part in parts:
            part.mkdir()
        options = "lowerdir={},upperdir={},workdir={}".format(*parts)
    mount(kind, "none", folder, options=options)
    Path(folder).chmod(0o777)


def main(host: str, ways: str, argv: list[str]) -> None:
    """Make the host, become the user, become the command."""
    root = os.getuid() == 0
    kind, _, folder = host.partition("=")
    if root or folder:
        call(LIBC.unshare, NEW_MOUNTS) if root else new_users(NEW_USERS | NEW_MOUNTS)
        call(LIBC.mount, None, b"/", None, RECURSIVE | PRIVATE, None)
    for way in ways.split(":") if root else ():
        make_way(way)
    if folder:
        lay(kind, folder)
    if host == "no-namespaces":
        new_users()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    if root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
