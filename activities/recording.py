"""Bring a private index up to what lies on disk, whatever lies there."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..workflows.errors import HostFaultError
from .changes import display, joined
from .git import Git, GitError
from .workspaces.removal import remove_tree

_ADD = ("-c", "core.safecrlf=false", "-c", "add.ignoreErrors=false", "add", "--sparse")
"""Paths outside of a sparse checkout count when they exist, and mixed line ends are no reason to fail."""

_RULES = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
"""What git opens in a work tree to know what to do with the rest."""

_ASIDE = ".orch-special"

_ENTRY = re.compile(
    rb"(\d+ [0-9a-f]+ \d)\t([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n"
    rb"  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: [0-9a-f]+\n"
)
"""One entry of `ls-files -z --stage --debug`."""


def record_tree(git: Git, *, without: Sequence[bytes] = ()) -> list[bytes]:
    """Make the index say what the work tree holds; return tracked paths, now deleted, that hold what git cannot.

    Untracked paths at or below `without` are left alone.
    """
    excludes = joined(b":(exclude,top,literal)" + name for name in _not_ignored(git, without))
    odd = _add(git, "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=excludes or b":/\0")
    return odd + (_add(git, "--update") if without else [])


def _not_ignored(git: Git, names: Sequence[bytes]) -> list[bytes]:
    """The names that git does not leave out by itself; it takes an exclusion of an ignored one for a wish to add it."""
    if not names:
        return []
    _, ignored, _ = git.attempt("check-ignore", "-z", "--stdin", stdin=joined(names))
    return [name for name in names if name not in set(ignored.split(b"\0"))]


def nested_repositories(git: Git) -> list[bytes]:
    """The untracked, not ignored repositories in the work tree: git lists those with a slash and never looks inside."""
    names = git.lines("ls-files", "-z", "--others", "--exclude-standard")
    return [name.removesuffix(b"/") for name in names if name.endswith(b"/")]


def make_ordinary(repository: Path) -> None:
    """Remove the `.git` of a nested repository, so that git takes its files for ordinary ones."""
    inner = repository / ".git"
    remove_tree(inner)
    if inner.is_symlink() or inner.is_file():
        inner.unlink()
    if inner.exists():
        raise HostFaultError(f"cannot remove {display(inner)}", hint="see who may write there")


def open_nested(git: Git, left_out: Sequence[bytes]) -> list[str]:
    """Turn repositories the agent made into plain folders, from the outermost inwards; return a warning for each."""
    warnings = []
    while nested := [name for name in nested_repositories(git) if not below(name, left_out)]:
        for name in nested:
            make_ordinary(git.cwd / os.fsdecode(name))
            warnings.append(f"{display(name)} is a repository of its own: its files are recorded, its history is not")
    return warnings


def below(name: bytes, folders: Collection[bytes]) -> bool:
    """Whether a path is one of the folders or lies in one."""
    return any(name == folder or name.startswith(folder + b"/") for folder in folders)


@contextmanager
def openable_rules(top: Path) -> Iterator[list[bytes]]:
    """While it lasts, git finds no FIFO where it reads rules: it would wait there for ever.

    Yields the paths of what stands under other names meanwhile.
    """
    blocking = list(_special_rules(top))
    for path in blocking:
        path.rename(path.with_name(f"{path.name}{_ASIDE}"))
    try:
        yield [os.fsencode(path.relative_to(top)) for path in blocking]
    finally:
        for path in blocking:
            path.with_name(f"{path.name}{_ASIDE}").rename(path)


def _special_rules(folder: Path) -> Iterator[Path]:
    """Files of rules below a folder that are none; git follows links to some, and dangling ones hurt nobody."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    yield from _special_rules(Path(entry))
            elif entry.name in _RULES and not entry.is_file() and Path(entry).exists() and not entry.is_dir():
                yield Path(entry)


def trust_times(git: Git) -> None:
    """Make the private index younger than all files, if nanoseconds tell what was touched from what was not.

    Git compares seconds, and reads every file again that is as young as its index: after a checkout, all of them. That
    costs time, and converts files that nobody touched but that are not as the attributes say. So what was touched in
    the second of the checkout loses its facts in the index, and the rest is taken as it was.
    """
    top, doubtful = os.fsencode(git.cwd), []
    for entry, name, *facts in _ENTRY.findall(_entries(git)):
        now, then = _facts(top + b"/" + name), tuple(map(int, facts))
        if now and now[0] == then[0] and now[2] == then[2]:
            if not now[1]:
                return  # no nanoseconds here: only contents tell
            if now != then:
                doubtful.append(entry + b"\t" + name)
    soon = time.time() + 2.0
    os.utime(git.env["GIT_INDEX_FILE"], (soon, soon))
    if doubtful:
        _write(git, "update-index", "-z", "--index-info", stdin=joined(doubtful))


def untouched(git: Git, top: Path, names: Sequence[bytes]) -> list[bytes]:
    """Those of the names whose file is still the very one that the checkout wrote, by the index of `git`.

    Times are compared to the nanosecond; git itself compares seconds, and hashes again what is younger than its index.
    """
    wanted, found = set(names), []
    for match in _ENTRY.finditer(_entries(git)):
        _, name, *facts = match.groups()
        if name in wanted and _facts(top / os.fsdecode(name)) == tuple(map(int, facts)):
            found.append(name)
    return found


def _add(git: Git, *args: str, stdin: bytes | None = None) -> list[bytes]:
    """`git add`; pipes, sockets and devices in the place of tracked files make it fail, so these are removed first."""
    try:
        _write(git, *_ADD, *args, stdin=stdin)
    except GitError:
        names = git.lines("diff-files", "-z", "--name-only", "--ignore-submodules=all")
        odd = [name for name in names if _is_odd(git.cwd / os.fsdecode(name))]
        if not odd:
            raise
        _write(git, "update-index", "-z", "--force-remove", "--stdin", stdin=joined(odd))
        _write(git, *_ADD, *args, stdin=stdin)
        return odd
    return []


def _write(git: Git, *args: str, stdin: bytes | None = None) -> None:
    """Run a command that writes the private index, and leave the index as old as it was.

    A newer one would be of the second of files that only `trust_times` knows to be untouched, or of later edits.
    """
    index = Path(git.env["GIT_INDEX_FILE"])
    before = index.stat().st_mtime_ns if index.exists() else None
    git.run(*args, stdin=stdin)
    if before is not None:
        os.utime(index, ns=(before, before))


def _entries(git: Git) -> bytes:
    return git.run("ls-files", "-z", "--stage", "--debug")


def _is_odd(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def _facts(path: Path | bytes) -> tuple[int, ...] | None:
    """What an index entry says of a file: times of change and modification (s, ns), inode and size in 32 bits."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    times = (*divmod(found.st_ctime_ns, 10**9), *divmod(found.st_mtime_ns, 10**9))
    return (*times, found.st_ino & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
