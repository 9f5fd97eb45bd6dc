"""Base checkouts of overlay workspaces: a layer goes when no workspace of a run that may be live names it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ..store import USED
from . import trash
from .disk import freed_by
from .found import Found, KeptError
from .scene import GRACE_S, Scene, workspaces_of

BASES = "bases"
"""The folder of a store's layers, one folder each, and beside it its lock; names have a dash."""

BASE = "base"
"""The file of a workspace's folder that names its layers, one name a line."""

TOGETHER_S = 5.0
"""Layers of one base are used within this time of each other."""


def unused(scene: Scene) -> Iterator[Found]:
    """Layers that nobody needs; those that were used last in their store are spare, for the next run may use them."""
    named = layers_named(scene)
    for store in scene.stores():
        layers = [path for path in (store.path / BASES).glob("*-*") if path.is_dir() and not path.is_symlink()]
        newest = max((_used(layer) for layer in layers if (layer / USED).exists()), default=0.0)
        for layer in sorted(layers):
            used, whole = _used(layer), (layer / USED).exists()
            if layer.name in named or not (whole or used < scene.now - GRACE_S):
                continue
            spare, step = whole and used >= newest - TOGETHER_S, partial(_remove, scene, layer)
            yield Found("base", layer, freed_by([layer]), used, step, store=store.key, spare=spare)


def layers_named(scene: Scene) -> frozenset[str]:
    """The layers that a workspace of a run that may be live stands on, open shells included."""
    places = [place for run in scene.open_runs() for place in workspaces_of(run)]
    places += [shell for run in scene.runs() for shell in run.glob("shell-*")]
    found = set[str]()
    for place in places:
        if (place / BASE).is_file():
            found.update((place / BASE).read_text(encoding="utf-8").split("\n"))
    return frozenset(found)


def _used(layer: Path) -> float:
    """When a layer was last opened; for one that is being made, or was left half made, when it was written."""
    used = layer / USED
    return (used if used.exists() else layer).stat().st_mtime


def _remove(scene: Scene, layer: Path) -> Iterable[Path]:
    """Ask again under the lock under which a workspace writes the layer's name down."""
    scene.require_free(layer)
    with layer.with_name(f"{layer.name}.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeptError("a workspace is being opened on it") from None
        if layer.name in layers_named(scene):
            raise KeptError("a workspace was opened on it")
        return (trash.discard(scene.home, layer),)
