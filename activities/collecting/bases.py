"""Base checkouts of overlay workspaces: a layer goes when no workspace of a run that may be live names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ..store import Store
from ..workspaces.bases import USED, bases_of, boot, is_made, layer_lock
from ..workspaces.overlay import BASE
from . import trash
from .disk import freed_by
from .found import Found, KeptError
from .scene import GRACE_S, Scene, workspaces_of

TOGETHER_S = 5.0
"""Layers of one base are used within this time of each other."""


def unused(scene: Scene) -> Iterator[Found]:
    """Layers that nobody needs; those that were used last in their store are spare, for the next run may use them."""
    named = layers_named(scene)
    for store in scene.stores():
        layers = list(layers_of(store))
        newest = max((_used(layer) for layer in layers if is_made(store, layer.name)), default=0.0)
        for layer in layers:
            used, whole = _used(layer), is_made(store, layer.name)
            if layer.name in named or not (whole or _left_half_made(scene, store, layer)):
                continue
            fit = whole and layer.name.endswith(boot()) and used >= newest - TOGETHER_S
            step = partial(_remove, scene, store, layer)
            yield Found("base", layer, freed_by([layer]), used, step, store=store.key, spare=fit)


def layers_of(store: Store) -> Iterator[Path]:
    """The folders of a store's layers, those that are being made among them."""
    for path in sorted(bases_of(store).glob("*-*")):
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("trash-"):
            yield path


def layers_named(scene: Scene) -> frozenset[str]:
    """The layers that a workspace of a run that may be live stands on, and what is open in a shell or being set up."""
    places = [place for run in scene.open_runs() for place in workspaces_of(run)]
    places += [shell for run in scene.runs() for shell in run.glob("shell-*")]
    for store in scene.stores():
        begun = (layer for layer in layers_of(store) if not is_made(store, layer.name))
        places += [layer for layer in begun if not _left_half_made(scene, store, layer)]
    return frozenset(
        name for place in places if (place / BASE).is_file() for name in (place / BASE).read_text().split()
    )


def _left_half_made(scene: Scene, store: Store, layer: Path) -> bool:
    """Whether a layer was not finished and nobody is there to finish it."""
    return not is_made(store, layer.name) and _used(layer) < scene.now - GRACE_S and not scene.busy(store.key)


def _used(layer: Path) -> float:
    """When a layer was last opened; for one that is being made, or was left half made, when it was written."""
    used = layer / USED
    return (used if used.exists() else layer).stat().st_mtime


def _remove(scene: Scene, store: Store, layer: Path) -> Iterable[Path]:
    """Ask again under the lock under which a workspace writes the layer's name down."""
    scene.require_free(layer)
    try:
        with layer_lock(store, layer.name, wait=False):
            if layer.name in layers_named(scene):
                raise KeptError("a workspace was opened on it")
            return (trash.discard(scene.home, layer),)
    except BlockingIOError:
        raise KeptError("a workspace is being opened on it") from None
