"""What stores hold for nobody: whole stores without runs, and objects that no run pins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ..campaigns import CAMPAIGNS
from ..git import GitError
from ..store import USED, Store
from . import trash
from .disk import freed_by
from .found import Found, KeptError
from .runs import pinned_runs
from .scene import GRACE_S, Scene

LOOSE = re.compile(r"[0-9a-f]{2}")
"""A folder of loose objects."""

MAX_INDEX = 64 << 20
"""Bytes of a pack's index that is read to see whether anybody needs the pack; a larger one is the user's history."""


def unused(scene: Scene, gone: frozenset[str]) -> Iterator[Found]:
    """Stores that no run uses or pins once the runs in `gone` are forgotten."""
    for store in scene.stores():
        if not scene.busy(store.key) and pinned_runs(store) <= gone and not _promises(store):
            step = partial(_remove, scene, store)
            yield Found("store", store.path, freed_by([store.path]), last_use(store), step, store=store.key, spare=True)


def last_use(store: Store) -> float:
    """When a run last began with a store."""
    for path in (store.path / USED, store.git_dir, store.path):
        if path.exists():
            return path.stat().st_mtime
    return 0.0


def unpinned(scene: Scene, gone: frozenset[str]) -> Iterator[Found]:
    """Loose objects, and packs, of which nothing can be reached from any ref once the runs in `gone` are forgotten."""
    for store in scene.stores():
        if store.git_dir.is_dir() and not scene.busy(store.key):
            step = partial(_prune, scene, store, gone)
            try:
                files = _unreachable(store, gone, scene.now - GRACE_S)
            except KeptError:
                files = []  # tried again, it says what is wrong
            else:
                if not files:
                    continue
            yield Found(
                "object", store.git_dir / "objects", freed_by(_with_folders(files)), scene.now, step, store=store.key
            )


def _remove(scene: Scene, store: Store) -> Iterable[Path]:
    scene.require_free(store.path)
    with scene.alone(store):
        if pinned_runs(store) or _promises(store):
            raise KeptError("a run or a campaign pins commits in it")
        return (trash.discard(scene.home, store.path),)


def _prune(scene: Scene, store: Store, gone: frozenset[str]) -> Iterable[Path]:
    """Look once more, while no run can begin, and delete: a file a time costs no more than a rename would."""
    with scene.alone(store):
        pinned = pinned_runs(store)
        for path in _unreachable(store, gone - pinned, scene.now - GRACE_S):
            path.unlink(missing_ok=True)
            if LOOSE.fullmatch(path.parent.name) and not any(path.parent.iterdir()):
                path.parent.rmdir()
    return ()


def _promises(store: Store) -> bool:
    """Whether a promotion is unfinished, a working tree is reserved, or a campaign stands at a commit of it."""
    if any(any((store.path / name).glob("*")) for name in ("journal", "reserved")):
        return True
    return store.git_dir.is_dir() and bool(store.git.text("for-each-ref", "--count=1", CAMPAIGNS))


def _unreachable(store: Store, gone: frozenset[str], before: float) -> list[Path]:
    """The files, last written `before`, that hold nothing that is needed; an index stands before its pack."""
    both = (store.git_dir / "objects", store.apart)
    loose = [path for objects in both for path in objects.glob("??/*") if LOOSE.fullmatch(path.parent.name)]
    packs = [path for objects in both for path in objects.glob("pack/*.idx") if path.stat().st_size < MAX_INDEX]
    old = [path for path in loose if path.stat().st_mtime < before]
    packs = [path for path in packs if path.stat().st_mtime < before and not path.with_suffix(".keep").exists()]
    if not old and not packs:
        return []
    needed = reachable(store, gone)
    spare = {path for path in old if (path.parent.name + path.name).encode() not in needed}
    return [*sorted(spare), *(file for idx in packs if not ids_in_pack(store, idx) & needed for file in _pack(idx))]


def _with_folders(files: list[Path]) -> list[Path]:
    """The files, those that are all that is in their folder of loose objects as that folder: it goes with them."""
    known = set(files)
    folders = {path.parent for path in files if LOOSE.fullmatch(path.parent.name)}
    emptied = {folder for folder in folders if all(path in known for path in folder.iterdir())}
    return [*emptied, *(path for path in files if path.parent not in emptied)]


def reachable(store: Store, gone: frozenset[str], without: frozenset[str] = frozenset()) -> set[bytes]:
    """The ids of all objects that are needed, but by the runs in `gone` and the refs `without`.

    KeptError when git cannot tell.
    """
    names = store.git.text("for-each-ref", "--format=%(refname)").splitlines()
    runs = frozenset(name for name in names if name.startswith("refs/orch/") and name.split("/")[2] in gone)
    kept = [name for name in names if name not in runs | without]
    if not kept:
        return set()
    stdin = "".join(f"{name}\n" for name in kept).encode()
    try:
        listed = store.git.run("rev-list", "--objects", "--no-object-names", "--stdin", stdin=stdin)
    except GitError as error:
        raise KeptError(f"git cannot tell what is needed: {error.stderr}") from error
    return set(listed.split())


def ids_in_pack(store: Store, index: Path) -> set[bytes]:
    """The ids of the objects in a pack, by its index."""
    return {line.split()[1] for line in store.git.run("show-index", stdin=index.read_bytes()).splitlines()}


def _pack(index: Path) -> list[Path]:
    """All files of a pack, its index first: without it nobody looks into the pack."""
    return [index, *(path for path in index.parent.glob(f"{index.stem}.*") if path != index)]
