"""Carried paths: dependency folders and local files that every workspace gets a copy of, never committed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pathspec

from .changes import GITLINK
from .repository import Repository

_SKIPPED = ".git"


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
    is itself a link is copied as what it links to; links inside that name a place in `source` name the copy instead.
    """
    for path in paths:
        _copy(source / path, workspace / path, roots=(source, workspace), follow=True)


def _matching(top: Path, folder: Path, spec: pathspec.GitIgnoreSpec) -> Iterator[Path]:
    for entry in os.scandir(top / folder):
        path = folder / entry.name
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name == _SKIPPED:
            continue
        if spec.match_file(f"{path}/" if entry.is_dir() else str(path)):
            yield path
        elif is_dir:
            yield from _matching(top, path, spec)


def _copy(source: Path, target: Path, *, roots: tuple[Path, Path], follow: bool = False) -> None:
    if source.is_symlink() and not follow:
        _copy_link(source, target, roots)
    elif source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for entry in os.scandir(source):
            if entry.name != _SKIPPED:
                _copy(Path(entry), target / entry.name, roots=roots)
        shutil.copystat(source, target)
    elif source.is_file() and not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(source, target)


def _copy_link(source: Path, target: Path, roots: tuple[Path, Path]) -> None:
    link, (old, new) = source.readlink(), roots
    if not os.path.lexists(target):
        target.symlink_to(new / link.relative_to(old) if link.is_relative_to(old) else link)


def _copy_file(source: Path, target: Path) -> None:
    """Copy contents, mode and times, by way of another name: an interrupted copy is never taken for the file."""
    aside = target.with_name(f"{target.name[:200]}.orch-new")
    with source.open("rb") as reader, aside.open("wb") as writer:
        _copy_bytes(reader.fileno(), writer.fileno())
    shutil.copystat(source, aside)
    aside.replace(target)


def _copy_bytes(reader: int, writer: int) -> None:
    """Let the kernel copy: it shares blocks where it can."""
    try:
        while os.copy_file_range(reader, writer, 1 << 30):
            pass
    except (OSError, AttributeError):
        os.lseek(reader, 0, os.SEEK_SET)
        os.ftruncate(writer, 0)
        with open(os.dup(reader), "rb") as source, open(os.dup(writer), "wb") as target:  # noqa: PTH123
            shutil.copyfileobj(source, target)
