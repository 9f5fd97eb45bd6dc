"""Applies edit scripts as an agent's tools would: a program of its own, so that it can run inside of a workspace.

`python editor.py FILE [ENTER]` reads a marshalled list of (tree, [(part, script), …]) and applies each script in its
part of the tree. With ENTER, the path of `enter.py`, a child for each tree enters the overlay first: as that
program does, without its start. A script is a sequence of (operation, *arguments), names and contents being bytes.

An edit that cannot be made is left out: where one workspace can make it and another one cannot, their trees differ,
which is what the tests look for.
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH110, PTH115, PTH116, PTH118, PTH120, PTH123, PTH208, PTH211
# names are bytes, and each import of a program that starts so often counts
from __future__ import annotations

import errno
import importlib
import marshal
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Any

Script = Sequence[tuple[Any, ...]]
"""Edits: the name of an operation, then its arguments."""

OPERATIONS: dict[str, Callable[..., None]] = {}
"""Each operation by its name."""


def operation(function: Callable[..., None]) -> Callable[..., None]:
    """Register an operation."""
    OPERATIONS[function.__name__] = function
    return function


def apply(tree: str, part: str, script: Script) -> None:
    """Make the edits of a script in a folder of a tree, in order."""
    os.chdir(os.path.join(tree, part))
    for name, *arguments in script:
        try:
            OPERATIONS[name](*arguments)
        except OSError:
            continue


@operation
def write(name: bytes, content: bytes) -> None:
    """Create or overwrite a file, through links and over anything but a folder; folders above it are made."""
    _make_parent(name)
    if os.path.exists(name):
        _need_file(name)
    with open(name, "wb") as file:
        file.write(content)


@operation
def append(name: bytes, content: bytes) -> None:
    """Add to a file's end."""
    _need_file(name)
    with open(name, "ab") as file:
        file.write(content)


@operation
def same_size(name: bytes) -> None:
    """Change a byte in place and put the time of modification back."""
    before = _need_file(name)
    with open(name, "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]) if byte else b"")
    os.utime(name, ns=(before.st_atime_ns, before.st_mtime_ns))


@operation
def rewrite(name: bytes) -> None:
    """Save a file as it is, by a temporary file that is renamed over it, as editors do."""
    _need_file(name)
    with open(name, "rb") as file:
        content = file.read()
    write(name + b".tmp~", content)
    os.rename(name + b".tmp~", name)


@operation
def touch(name: bytes) -> None:
    """Set a file's time to now."""
    os.utime(name)


@operation
def chmod(name: bytes, mode: int) -> None:
    """Set a file's mode, not that of what a link names."""
    if not stat.S_ISREG(os.lstat(name).st_mode):
        raise OSError
    os.chmod(name, mode)


@operation
def delete(name: bytes) -> None:
    """Remove whatever is there."""
    if stat.S_ISDIR(os.lstat(name).st_mode):
        for entry in os.listdir(name):
            delete(os.path.join(name, entry))
        os.rmdir(name)
    else:
        os.unlink(name)


@operation
def move(name: bytes, to: bytes) -> None:
    """mv(1): rename, or copy and delete where the kernel refuses."""
    _make_parent(to)
    try:
        os.rename(name, to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(name, to)
        delete(name)


@operation
def exchange(one: bytes, other: bytes) -> None:
    """Let two names change places."""
    os.lstat(other)
    move(one, one + b".aside")
    move(other, one)
    move(one + b".aside", other)


@operation
def copy(name: bytes, to: bytes) -> None:
    """cp -a: modes and times are kept, and links stay links."""
    found = os.lstat(name)
    _make_parent(to)
    if (os.path.realpath(to) + b"/").startswith(os.path.realpath(name) + b"/"):
        raise OSError(errno.EINVAL, "into itself")
    if stat.S_ISDIR(found.st_mode):
        os.mkdir(to)
        for entry in os.listdir(name):
            copy(os.path.join(name, entry), os.path.join(to, entry))
    elif stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name), to)
    elif stat.S_ISREG(found.st_mode):
        with open(name, "rb") as reader, open(to, "wb") as writer:
            writer.write(reader.read())
    else:
        os.mknod(to, found.st_mode)
    if not stat.S_ISLNK(found.st_mode):
        os.chmod(to, stat.S_IMODE(found.st_mode))
        os.utime(to, ns=(found.st_atime_ns, found.st_mtime_ns))


@operation
def symlink(name: bytes, target: bytes) -> None:
    """Put a link in the place of whatever is there."""
    _clear(name)
    os.symlink(target, name)


@operation
def hardlink(name: bytes, to: bytes) -> None:
    """Give a file a second name."""
    _clear(to)
    os.link(name, to, follow_symlinks=False)


@operation
def replace(name: bytes, content: bytes) -> None:
    """Put a file in the place of whatever is there."""
    _clear(name)
    write(name, content)


@operation
def folder(name: bytes, files: Sequence[tuple[bytes, bytes]]) -> None:
    """Put a new folder with some files in the place of whatever is there: nothing of it shines through."""
    _clear(name)
    os.mkdir(name)
    for inner, content in files:
        write(os.path.join(name, inner), content)


@operation
def special(name: bytes, kind: str) -> None:
    """Put a FIFO or a socket in the place of whatever is there."""
    _clear(name)
    os.mknod(name, 0o644 | (stat.S_IFIFO if kind == "fifo" else stat.S_IFSOCK))


@operation
def nested(name: bytes, committed: bool) -> None:
    """Make a folder a repository of its own, with or without a commit; what is in it already stays."""
    os.makedirs(os.path.join(name, b".git/refs/heads"))
    os.makedirs(os.path.join(name, b".git/objects"))
    write(os.path.join(name, b".git/HEAD"), b"ref: refs/heads/main\n")
    if committed:
        tree = _store(name, b"tree", b"")
        who = b"A U Thor <author@example.org> 1700000000 +0000"
        lines = (b"tree " + tree, b"author " + who, b"committer " + who, b"", b"first\n")
        write(os.path.join(name, b".git/refs/heads/main"), _store(name, b"commit", b"\n".join(lines)) + b"\n")


@operation
def mark(name: bytes, attribute: str, value: bytes) -> None:
    """Set an attribute that the file system of a workspace may keep its own marks in."""
    for space in ("user", "trusted"):
        try:
            os.setxattr(name, f"{space}.overlay.{attribute}", value)
        except OSError:
            continue


@operation
def git(*args: bytes) -> None:
    """Run git, as the agent's own; what it says is not wanted."""
    import subprocess

    command = [b"git", b"-c", b"user.name=A", b"-c", b"user.email=a@example.org", *args]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _store(name: bytes, kind: bytes, content: bytes) -> bytes:
    """Write a loose object by hand: a git process for each nested repository would cost more than all the rest."""
    import hashlib  # here, as most scripts do not need it and each start of this program counts
    import zlib

    data = kind + b" %d\0" % len(content) + content
    oid = hashlib.sha1(data).hexdigest().encode()
    write(os.path.join(name, b".git/objects", oid[:2], oid[2:]), zlib.compress(data))
    return oid


def _need_file(name: bytes) -> os.stat_result:
    """Raise unless there is a file to be opened: a FIFO would make the opener wait."""
    found = os.stat(name)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "no file")
    return found


def _make_parent(name: bytes) -> None:
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)


def _clear(name: bytes) -> None:
    _make_parent(name)
    if os.path.lexists(name):
        delete(name)


def _in_child(enter: Callable[..., None], tree: str, bundle: Sequence[tuple[str, Script]]) -> None:
    """Enter the workspace of a tree and make its edits, as a process of its own."""
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{tree}: not edited")
        return
    try:
        os.chdir(tree)
        enter(os.path.dirname(tree), view=False)
        for part, script in bundle:
            apply(tree, part, script)
    except BaseException as error:  # noqa: BLE001 - never back into the loop
        os.write(2, f"{tree}: {error!r}\n".encode())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Apply what the file holds."""
    with open(sys.argv[1], "rb") as file:
        work = marshal.load(file)
    for tree, bundle in work:
        if sys.argv[2:]:
            _in_child(_enter(sys.argv[2]), tree, bundle)
        else:
            for part, script in bundle:
                apply(tree, part, script)


def _enter(program: str) -> Callable[..., None]:
    """What the program with this path does before it becomes its command."""
    if os.path.dirname(program) not in sys.path:
        sys.path.insert(0, os.path.dirname(program))
    found: Callable[..., None] = importlib.import_module("enter").enter
    return found


if __name__ == "__main__":
    main()
