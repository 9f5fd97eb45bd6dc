"""Carried paths: dependency folders and local files that every workspace gets a copy of, never committed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pathspec

from .changes import GITLINK
from .repository import Repository
from .venvs import resettle
from .workspaces.removal import remove_tree

THREADS = 4
"""Files that are copied at once: a copy mostly waits for the kernel."""

SHARE = 256
"""Files that a thread takes at a time."""

_SKIPPED = ".git"

_Pair = tuple[str, str]


def carried_paths(top: Path, globs: Sequence[str]) -> list[Path]:
    """The paths that match the globs (rules of a .gitignore), relative to `top`; a folder stands for all in it."""
    spec = pathspec.GitIgnoreSpec.from_lines(globs)
    return sorted(_matching(top, Path(), spec)) if globs else []


def populated_submodules(repository: Repository) -> list[Path]:
    """The submodules whose files are there; carried, they reach a workspace as they are and without the network."""
    records = repository.git.lines("ls-files", "-z", "--stage")
    links = [record.partition(b"\t")[2] for record in records if record.startswith(GITLINK.encode())]
    return [path for name in links if any((repository.top / (path := Path(os.fsdecode(name)))).glob("*"))]


def carry(source: Path, workspace: Path, paths: Iterable[Path]) -> None:
    """Copy paths (relative to `source`) into the workspace; what is there already, as checked-out files are, stays.

    Copies share blocks where the file system can, never inodes: no agent's write reaches the user's files. A path that
    is itself a link is copied as what it links to; links inside that name a place in `source` name the copy instead,
    and so do the programs of a Python environment.
    """
    for path in paths:
        here = source / path
        _bring(Path(os.path.realpath(here)) if here.is_symlink() else here, workspace / path, (source, workspace))
        resettle(workspace / path, here, source, path)


def _matching(top: Path, folder: Path, spec: pathspec.GitIgnoreSpec) -> Iterator[Path]:
    for entry in os.scandir(top / folder):
        path = folder / entry.name
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name == _SKIPPED:
            continue
        as_folder = entry.is_dir() or entry.is_symlink()  # one that leads nowhere may stand for a folder, too
        if spec.match_file(f"{path}/" if as_folder else str(path)):
            yield path
        elif is_dir:
            yield from _matching(top, path, spec)


def _bring(source: Path, target: Path, roots: tuple[Path, Path]) -> None:
    """Copy aside and rename into place, so that half a copy is never taken for the whole; folders are merged."""
    if not os.path.lexists(target):
        aside = target.with_name(f"{target.name[:200]}.orch-new")
        remove_tree(aside) if aside.is_dir() else aside.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, aside, roots)
        if os.path.lexists(aside):
            aside.rename(target)
    elif source.is_dir() and target.is_dir() and not source.is_symlink() and not target.is_symlink():
        for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
            if entry.name != _SKIPPED:
                _bring(Path(entry), target / entry.name, roots)
        shutil.copystat(source, target)


def _copy(source: Path, target: Path, roots: tuple[Path, Path]) -> None:
    """Copy a file, link or folder to where nothing is: folders and links first, then files, some at once."""
    folders, files = list[tuple[str, str]](), list[tuple[str, str]]()
    _lay_out(str(source), str(target), roots, (folders, files))
    with ThreadPoolExecutor(THREADS) as threads:
        share = max(1, min(SHARE, len(files) // THREADS))
        list(threads.map(_copy_files, (files[start : start + share] for start in range(0, len(files), share))))
    for old, new in reversed(folders):
        shutil.copystat(old, new)


def _lay_out(source: str, target: str, roots: tuple[Path, Path], found: tuple[list[_Pair], list[_Pair]]) -> None:
    """Make the folders and links; what is to be copied into them is added to `found`. Pipes and the like are left."""
    try:
        mode = os.lstat(source).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        _copy_link(Path(source), Path(target), roots)
    elif stat.S_ISREG(mode):
        found[1].append((source, target))
    elif stat.S_ISDIR(mode):
        os.mkdir(target, 0o700)  # noqa: PTH102 - thousands of them
        found[0].append((source, target))
        for entry in os.scandir(source):
            if entry.name != _SKIPPED:
                _lay_out(entry.path, f"{target}/{entry.name}", roots, found)


def _copy_link(source: Path, target: Path, roots: tuple[Path, Path]) -> None:
    link, (old, new) = source.readlink(), roots
    target.symlink_to(new / link.relative_to(old) if link.is_relative_to(old) else link)


def _copy_files(pairs: Sequence[_Pair]) -> None:
    for source, target in pairs:
        with suppress(FileNotFoundError):
            _copy_file(source, target)


def _copy_file(source: str, target: str) -> None:
    """Copy contents, mode and times to a new file."""
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        known = os.fstat(reader)
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for start, end in _pieces(reader, known):
                os.lseek(writer, start, os.SEEK_SET)
                os.lseek(reader, start, os.SEEK_SET)
                _copy_bytes(reader, writer, end - start)
            os.ftruncate(writer, known.st_size)
            os.fchmod(writer, stat.S_IMODE(known.st_mode))
            os.utime(writer, ns=(known.st_atime_ns, known.st_mtime_ns))
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _pieces(reader: int, known: os.stat_result) -> Iterator[tuple[int, int]]:
    """The parts of a file that hold something: what takes no room in the original takes none in the copy."""
    if known.st_blocks * 512 >= known.st_size:
        yield 0, known.st_size
        return
    start = end = 0
    while end < known.st_size:
        try:
            start = os.lseek(reader, end, os.SEEK_DATA)
        except OSError:
            return  # nothing but a hole is left
        end = os.lseek(reader, start, os.SEEK_HOLE)
        yield start, end


def _copy_bytes(reader: int, writer: int, left: int) -> None:
    """Let the kernel copy: it shares blocks where it can."""
    try:
        while left > 0 and (done := os.copy_file_range(reader, writer, left)):
            left -= done
    except (OSError, AttributeError):
        while left > 0 and (data := os.read(reader, min(left, 1 << 20))):
            left -= len(data)
            os.write(writer, data)
