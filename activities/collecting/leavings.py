"""What interrupted work leaves: trash that was not emptied, private files in stores; and old logs and backups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from . import trash
from .disk import freed_by
from .found import Found
from .scene import Scene

DAY_S = 86_400.0

PRIVATE = ("index-*", "entry-*", "tmp*", "store.git.new")
"""Folders that a step makes in a store's folder for itself, and removes unless it is killed."""


def rubbish(scene: Scene) -> Iterator[Found]:
    """What was renamed away and not deleted, and what killed steps left in stores."""
    for path in trash.lying(scene.home):
        yield Found("trash", path, freed_by([path]), scene.now, partial(_same, path))
    for store in scene.stores():
        if not scene.busy(store.key):
            for path in sorted(found for pattern in PRIVATE for found in store.path.glob(pattern)):
                if scene.now - path.lstat().st_mtime > DAY_S:
                    yield Found("trash", path, freed_by([path]), scene.now, partial(_discard, scene, path))


def logs(scene: Scene) -> Iterator[Found]:
    """Rotated logs of the engine and the worker, and databases kept from before an upgrade."""
    engine = scene.home.engine
    for path in sorted([*engine.glob("*.log.1"), *engine.glob("backup-*")]):
        step, used = partial(_discard, scene, path), path.lstat().st_mtime
        yield Found("log", path, freed_by([path]), used, step, spare=True)


def _same(path: Path) -> Iterable[Path]:
    return (path,)


def _discard(scene: Scene, path: Path) -> Iterable[Path]:
    return (trash.discard(scene.home, path),)
