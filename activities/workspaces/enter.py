"""Run a command in an overlay workspace, mounted for it and its descendants alone: gone with the last of them.

A program of the standard library alone (`python -I -S enter.py FOLDER MODE ARGV…`). FOLDER is a workspace:

    base     the names of its layers, one a line, the topmost first
    bases    a link to the folder of the layers: folders with a `tree`, or workspaces whose `upper` is the layer
    upper    what was written in the workspace
    work     overlayfs's own
    tree     where the workspace is mounted; also at the `tree` of a layer that is a workspace: programs that were
             installed there know that path

MODE is `work`, or `view` for a read-only look that disturbs nobody. One upper is mounted for work by one at a time:
with `index=on` the kernel refuses a second mount as long as any process is left in the first one. It does that for
those who have the right to mount; for all others the mounts of all processes are looked through, under a lock.
"""

# ruff: noqa: PTH112, PTH115, PTH123, PTH208
from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SIGPIPE, SIGXFSZ = 13, 25
"""As the system's headers say. The module `signal` takes a third of this program's time to import."""

COMPLAINT = "orch: "
"""Begins the one line that is printed when the command could not be started."""

CANNOT_ENTER, NOT_FOUND = 126, 127
"""How this program ends then, as a shell does."""

NO_NAMESPACES = "this host gives no user namespace"
"""What the system's own words do not tell: "No space left on device" is said when none are allowed."""

PATIENCE_S = 5.0
"""How long an earlier mount may take to go away: the kernel does that after the last process has ended."""


def enter(folder: str, *, view: bool) -> None:
    """Mount the workspace in namespaces of this process's own, and stand in the folder it stood in. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"{folder}/base", encoding="utf-8") as file:
        layers = [os.path.realpath(f"{folder}/bases/{name}") for name in file.read().split()]
        fcntl.flock(file, fcntl.LOCK_EX)
        privileged = _isolate(libc)
        options = _options(folder, list(map(files_of, layers)), view=view, privileged=privileged)
        target = os.path.realpath(f"{folder}/tree")
        _mount_when_free(libc, target, options, alone=view or privileged)
    for layer in layers:
        if files_of(layer) != f"{layer}/tree":
            _call(libc.mount, os.fsencode(target), os.fsencode(f"{layer}/tree"), None, MS_BIND, None)
    os.chdir(os.getcwd())  # noqa: PTH109 - the same name, now that of the mount


def files_of(layer: str) -> str:
    """Where the files of a layer lie."""
    upper = f"{layer}/upper"
    return upper if os.path.isdir(upper) else f"{layer}/tree"


def _isolate(libc: ctypes.CDLL) -> bool:
    """Get a mount namespace of our own; return whether we have the right to mount outside of it, too.

    Without that, a user namespace gives it. There everybody stays who he is: git compares owners.
    """
    uid, gid = os.geteuid(), os.getegid()
    privileged = not libc.unshare(CLONE_NEWNS)
    if not privileged:
        _call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNS, said=NO_NAMESPACES)
        for name, text in (("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"), ("uid_map", f"{uid} {uid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _call(libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    return privileged


def _options(folder: str, lower: list[str], *, view: bool, privileged: bool) -> str:
    """The options of the mount. Only the privileged can rename folders of a layer: others get EXDEV and copy."""
    options = ["metacopy=off", "index=off" if view else "index=on"]
    options.append(f"redirect_dir={'follow' if view else 'on'}" if privileged else "userxattr")
    if view:
        return ",".join([*options, f"lowerdir={_short(f'{folder}/upper', *lower)}"])
    own = [f"upperdir={_short(f'{folder}/upper')}", f"workdir={_short(f'{folder}/work')}"]
    return ",".join([*options, f"lowerdir={_short(*lower)}", *own])


def _short(*folders: str) -> str:
    """Names for folders that need no escapes and are never too long; the descriptors are closed by exec."""
    return ":".join(f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_DIRECTORY)}" for folder in folders)


def _mount_when_free(libc: ctypes.CDLL, target: str, options: str, *, alone: bool) -> None:
    """Mount, once nobody else has this workspace mounted; `alone` when the kernel sees to that, or none is bothered."""
    until = time.monotonic() + PATIENCE_S
    while not alone and _mounted(target):
        if time.monotonic() > until:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        time.sleep(0.02)
    while libc.mount(b"orch", os.fsencode(target), b"overlay", 0, options.encode("ascii")):
        if (number := ctypes.get_errno()) != errno.EBUSY or time.monotonic() > until:
            raise OSError(number, os.strerror(number))
        time.sleep(0.02)


def _mounted(target: str) -> bool:
    """Whether something is mounted there in the namespace of any process that can be looked at."""
    escaped = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in target)
    wanted, seen = os.fsencode(f" {escaped} "), set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            namespace = os.readlink(f"/proc/{pid}/ns/mnt")
            if namespace not in seen:
                with open(f"/proc/{pid}/mountinfo", "rb") as file:
                    if wanted in file.read():
                        return True
            seen.add(namespace)
        except OSError:  # gone, or somebody else's
            continue
    return False


def _call(function: Callable[..., int], *arguments: object, said: str = "") -> None:
    if function(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, said or os.strerror(number))


def main(folder: str, mode: str, argv: list[str]) -> NoReturn:
    """Enter and become the command, or say in one line why not."""
    try:
        enter(folder, view=mode == "view")
    except OSError as error:
        status, problem = CANNOT_ENTER, f"the workspace cannot be mounted: {error.strerror}"
    else:
        for number in (SIGPIPE, SIGXFSZ):  # Python ignores them, and so would the command
            ctypes.CDLL(None).signal(number, None)
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - the command is what this program is for
        except OSError as error:
            status, problem = NOT_FOUND, f"{argv[0]}: {error.strerror}"
    os.write(2, f"{COMPLAINT}{problem}\n".encode("utf-8", "replace"))
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
