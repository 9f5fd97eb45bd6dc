"""Object files that a store shared with the user's repository, until that was packed anew: now they are ours alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ...workflows.errors import RefusedError
from .. import artifacts
from ..objects import IMPORTED, link_objects
from ..renames import Spot, exchange
from ..repository import Repository, inspect
from ..store import Store, store_key
from . import trash
from .disk import BLOCK
from .found import Found, KeptError
from .scene import Scene, store_of
from .stores import LOOSE, ids_in_pack, reachable

LINKED = "linked"
LEAST = 1 << 20
"""Bytes that are ours alone below which nothing is done: the user's next `git gc` makes more of them."""


def outlived(scene: Scene, _gone: frozenset[str]) -> Iterator[Found]:
    """Stores in which files lie that the user's repository no longer has; what of them is needed is kept in a pack."""
    for store in scene.stores():
        lost = sum(path.stat().st_blocks * BLOCK for path in _files(store) if path.stat().st_nlink == 1)
        if lost >= LEAST and not scene.busy(store.key):
            repository = _repository(scene, store)
            needed = _missing(store, repository.objects if repository else None, _stale(store, repository))
            gain = lost - _packed_size(store, needed)
            if gain > 0:
                step = partial(_renew, scene, store, repository)
                yield Found("linked", store.path / LINKED, gain, scene.now, step, store=store.key)


def _renew(scene: Scene, store: Store, repository: Repository | None) -> Iterable[Path]:
    """Link anew what the user's repository has now, pack what only we have, and put the new folder in place at once."""
    with scene.alone(store):
        aside = store.path / f"{LINKED}.new"
        shutil.rmtree(aside, ignore_errors=True)
        if repository is None:
            aside.mkdir()
        else:
            link_objects(repository, aside)
        stale = _stale(store, repository)
        _pack(store, _missing(store, aside, stale))
        store.git.run("update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in stale).encode())
        _swap(store, aside)
        try:
            reachable(store, frozenset())
        except KeptError:
            _swap(store, aside)
            raise
        return (trash.discard(scene.home, aside),)


def _swap(store: Store, aside: Path) -> None:
    folder = os.open(store.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        exchange(Spot(folder, aside.name), Spot(folder, LINKED))
    finally:
        os.close(folder)


def _repository(scene: Scene, store: Store) -> Repository | None:
    """The user's repository, as some run of the store names it; None when it is not there any more."""
    for run in reversed(scene.runs()):
        if store_of(run) == store.key:
            try:
                checkout = artifacts.kept_checkout(scene.home, run.name)
                found = inspect(checkout) if checkout else None
            except (OSError, RefusedError, ValueError):
                continue
            if found and store_key(found) == store.key:
                return found
    return None


def _stale(store: Store, repository: Repository | None) -> frozenset[str]:
    """The marks of commits that the user has no more: no import will build on them."""
    names = store.git.text("for-each-ref", "--format=%(refname)", f"{IMPORTED}/").splitlines()
    commits = {name: name.rpartition("/")[2] for name in names}
    return frozenset(
        ref for ref, commit in commits.items() if not (repository and repository.git.ok("cat-file", "-e", commit))
    )


def _missing(store: Store, elsewhere: Path | None, without: frozenset[str]) -> set[bytes]:
    """What is needed of the linked files and lies neither in the store itself nor in the objects `elsewhere`."""
    have = _ids(store, store.git_dir / "objects") | (_ids(store, elsewhere) if elsewhere else set())
    return (reachable(store, frozenset(), without) - have) & _ids(store, store.path / LINKED)


def _ids(store: Store, objects: Path) -> set[bytes]:
    loose = {
        (path.parent.name + path.name).encode() for path in objects.glob("??/*") if LOOSE.fullmatch(path.parent.name)
    }
    return loose.union(*(ids_in_pack(store, index) for index in objects.glob("pack/*.idx")))


def _packed_size(store: Store, ids: set[bytes]) -> int:
    """About what a pack of these objects takes: as much as they take now."""
    stdin = b"".join(name + b"\n" for name in sorted(ids))
    sizes = store.git.run("cat-file", "--batch-check=%(objectsize:disk)", stdin=stdin) if ids else b""
    return sum(int(line) for line in sizes.split())


def _pack(store: Store, ids: set[bytes]) -> None:
    if ids:
        base = store.git_dir / "objects" / "pack" / "pack"
        stdin = b"".join(name + b"\n" for name in sorted(ids))
        store.git.run("pack-objects", "-q", "--delta-base-offset", str(base), stdin=stdin)


def _files(store: Store) -> list[Path]:
    return [path for path in (store.path / LINKED).glob("*/*") if path.is_file() and not path.is_symlink()]
