"""What runs leave: what dead ones still hold, workspaces of closed ones, killed shells, old results, stray pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ...workflows.model.goal import CloseRun, PrepareRun
from .. import artifacts, shells, slots
from ..home import Home
from ..lanes.desk import DESK, TAKEN, clear_desk
from ..runs import close_run_folder
from ..store import Store
from ..workspaces import INDEX, TREE
from ..workspaces.clone import GIT_DIR
from ..workspaces.overlay import UPPER, WORK
from ..workspaces.registry import close_workspace
from ..workspaces.removal import TRASH
from . import trash
from .disk import freed_by
from .found import Found, KeptError
from .scene import Scene, store_of, workspaces_of


def held(scene: Scene) -> Iterator[Found]:
    """Processes, workspaces, slots, ports and reservations of dead runs."""
    for name in sorted(scene.dead):
        folder = scene.home.run(name)
        if folder.is_dir() and not folder.is_symlink() and not artifacts.is_closed(scene.home, name):
            parts = [path for place in workspaces_of(folder) for path in _parts(place)]
            yield Found("run", folder, freed_by(parts), scene.now, partial(_close, scene.home, name), run=name)
    for path, holder in holders(scene.home):
        if run_of(holder) in scene.dead:
            yield Found("slot", path, 0, scene.now, partial(_release, path.parent, holder), run=run_of(holder))


def leavings(scene: Scene) -> Iterator[Found]:
    """Workspaces that were not removed when their run was closed, and those of killed shells."""
    for folder in scene.runs():
        closed = artifacts.is_closed(scene.home, folder.name)
        for place in workspaces_of(folder):
            shell = place.name.startswith(shells.PREFIX)
            if shell and not shells.is_live(place):
                size, step = freed_by([place]), partial(_close_shell, scene, place, store_of(folder) or "")
                yield Found("shell", place, size, place.stat().st_mtime, step, run=folder.name)
            elif closed and not shell and (parts := _parts(place)):
                step = partial(_close_workspace, scene, place, store_of(folder) or "")
                yield Found("workspace", place, freed_by(parts), place.stat().st_mtime, step, run=folder.name)


def results(scene: Scene) -> Iterator[Found]:
    """The folders of closed runs, with the refs that pin their candidates."""
    for folder in scene.runs():
        if artifacts.is_closed(scene.home, folder.name):
            used = (folder / artifacts.CLOSED).stat().st_mtime
            key, step = store_of(folder), partial(_forget, scene, folder)
            pins = [scene.home.store(key) / "store.git/refs/orch" / folder.name] if key else []
            yield Found("result", folder, freed_by([folder, *pins]), used, step, run=folder.name, spare=True)


def strays(scene: Scene) -> Iterator[Found]:
    """Pins of dead runs that have no folder."""
    for store in scene.stores():
        for name in sorted(pinned_runs(store) & scene.dead):
            if not scene.home.run(name).exists():
                path = store.git_dir / "refs" / "orch" / name
                step = partial(_drop_pins, store, name)
                yield Found("ref", path, freed_by([path]), scene.now, step, run=name, store=store.key)


def pinned_runs(store: Store) -> frozenset[str]:
    """The runs that have refs in a store."""
    if not store.git_dir.is_dir():
        return frozenset()
    names = store.git.text("for-each-ref", "--format=%(refname)", "refs/orch/").splitlines()
    return frozenset(name.split("/")[2] for name in names)


def holders(home: Home) -> list[tuple[Path, str]]:
    """The taken slots and port blocks, and who holds each."""
    folders = (home.slots, home.ports)
    return [(folder / str(index), holder) for folder in folders for index, holder in slots.held(folder).items()]


def run_of(holder: str) -> str:
    """The run of a slot's holder."""
    return holder.split("/", maxsplit=1)[0]


def _parts(place: Path) -> list[Path]:
    """What of a workspace lies in its folder."""
    names = (TREE, INDEX, UPPER, WORK, GIT_DIR, DESK, TAKEN)
    there = [path for path in (place / name for name in names) if path.is_symlink() or path.exists()]
    return [*there, *place.glob(f"{TRASH}*")] if there else []


def _close(home: Home, run: str) -> Iterable[Path]:
    request = home.run(run) / artifacts.REQUEST
    if request.exists():
        repo = PrepareRun.model_validate_json(request.read_text(encoding="utf-8")).repo
        close_run_folder(home, CloseRun(run=run, repo=repo, store=store_of(home.run(run)) or ""))
    else:
        artifacts.mark_closed(home, run)
    return ()


def _release(folder: Path, holder: str) -> Iterable[Path]:
    slots.release(folder, holder)
    return ()


def _close_workspace(scene: Scene, place: Path, store: str) -> Iterable[Path]:
    scene.require_free(place)
    clear_desk(place)
    close_workspace(Store(scene.home, store), place)
    return ()


def _close_shell(scene: Scene, place: Path, store: str) -> Iterable[Path]:
    scene.require_free(place)
    shells.close(scene.home, place, Store(scene.home, store))
    return ()


def _forget(scene: Scene, folder: Path) -> Iterable[Path]:
    """Rename the folder away, then drop the pins: killed between, they are pins without a folder."""
    scene.require_free(folder)
    key = store_of(folder)
    store = Store(scene.home, key) if key else None
    if store and any((store.path / "journal").glob(f"{folder.name}-*")):
        raise KeptError("its promotion is not finished: run `orch promote` again")
    if any(shells.is_live(shell) for shell in folder.glob(f"{shells.PREFIX}*")):
        raise KeptError("a shell of it is open")
    gone = trash.discard(scene.home, folder)
    if store and store.git_dir.is_dir():
        store.drop_run(folder.name)
    return (gone,)


def _drop_pins(store: Store, run: str) -> Iterable[Path]:
    store.drop_run(run)
    return ()
