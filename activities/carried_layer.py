"""Carried paths as a layer below overlay workspaces: copied once for all of them, whatever their size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from .artifacts import kept_checkout, write_whole
from .carry import carried_paths, carry
from .store import Store
from .workspaces.bases import boot, is_made, make_layer
from .workspaces.registry import choose

KEPT = "carried-layer"
"""The file in a run's folder that names its layer: all workspaces of a run carry the same."""


def carried_layer(store: Store, run: str, globs: Sequence[str]) -> tuple[str, ...]:
    """The names of the layers with what a run carries: none, or one that is made now if it is not there."""
    if not globs or choose(store.home).name != "overlay":
        return ()
    kept = store.home.run(run) / KEPT
    if kept.exists() and is_made(store, name := kept.read_text(encoding="utf-8")):
        return (name,)
    source = kept_checkout(store.home, run)
    paths = carried_paths(source, globs) if source else []
    if source is None or not paths:
        return ()
    name = make_layer(store, f"carried-{_digest(source, paths)}-{boot()}", lambda tree: _fill(source, tree, paths))
    write_whole(kept, name)
    return (name,)


def _fill(source: Path, tree: Path, paths: Sequence[Path]) -> None:
    """Carry, and turn links that lead to another place in the copy into relative ones: it shows in many places."""
    carry(source, tree, paths)
    for path in _files(tree, Path()):
        link = tree / path
        if link.is_symlink() and link.readlink().is_relative_to(tree):
            target = os.path.relpath(link.readlink(), link.parent)
            link.unlink()
            link.symlink_to(target)


def _digest(source: Path, paths: Sequence[Path]) -> str:
    """A short word for what lies at the paths: names, kinds, sizes, times and inodes, or where a link leads."""
    digest = hashlib.sha256()
    for path in paths:
        for name in (path, *(_files(source, path) if (source / path).is_dir() else ())):
            found = (source / name).lstat()
            facts = (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino)
            digest.update(os.fsencode(name) + f"\0{facts}\0".encode())
    return digest.hexdigest()[:20]


def _files(top: Path, folder: Path) -> Iterator[Path]:
    """All that is no folder below a folder, relative to `top`."""
    with os.scandir(top / folder) as entries:
        for entry in sorted(entries, key=lambda found: found.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _files(top, folder / entry.name)
            else:
                yield folder / entry.name
