"""Opening a workspace: over what others have set up already, or set up by itself; each step is done once."""

from __future__ import annotations

from ..workflows.model.attempt import OpenWorkspace, Workspace
from ..workflows.model.exit import Exit, ExitKind
from .carried_layer import carried_layer
from .changes import write_changes
from .effect import ended_if_cancelled, in_thread
from .measuring.setup import JOB as SETUP
from .measuring.setup import set_up
from .places import Place
from .shared_setup import MADE_BY_SETUP, shared_setup
from .snapshots import made_by_setup
from .store import Store
from .workspaces import TREE, Layers
from .workspaces.registry import open_workspace, provider_of


async def opened(store: Store, place: Place, request: OpenWorkspace, *, own_refs: bool = False) -> Workspace:
    """Open the workspace, or find it as it was before a rest: what was shared then may be gone by now.

    With `own_refs` it shares no refs with the store. It has its slot already; a failing set-up is a value.
    """
    ready = place.folder / "ready"
    if ready.exists():
        setup = Exit(kind=ExitKind.OK) if request.contract.setup else None
        return Workspace(path=str(place.folder / TREE), setup=setup)
    workspace = await _set_up(store, place, request, own_refs=own_refs)
    if workspace.setup is None or workspace.setup.ok:
        ready.touch()
    return workspace


async def _set_up(store: Store, place: Place, request: OpenWorkspace, *, own_refs: bool) -> Workspace:
    tree, made = str(place.folder / TREE), place.folder / "opened"
    carried = await in_thread(carried_layer, store, request.attempt.run, request.contract.carry)
    shared = await shared_setup(store, place, request, carried) if request.contract.setup else None
    if shared and shared.layers is None:
        return Workspace(path=tree, setup=shared.exit, setup_output=shared.output)
    if not made.exists():
        layers = shared.layers if shared and shared.layers else Layers(below=carried)
        await in_thread(open_workspace, store, place.folder, request.commit, layers, own_refs=own_refs)
        made.touch()
    if shared:
        return Workspace(path=tree, setup=shared.exit)
    writable = provider_of(place.folder).writable(store, place.folder)
    async with ended_if_cancelled(place.folder / SETUP):
        setup, output = await set_up(place, place.folder / TREE, request.contract, writable, sandbox=request.sandbox)
    if setup is not None and setup.ok:
        await in_thread(_note_setup, store, place, request)
    return Workspace(path=tree, setup=setup, setup_output=output)


def _note_setup(store: Store, place: Place, request: OpenWorkspace) -> None:
    """Remember what set-up made, before any agent is there to change it."""
    if not (place.folder / MADE_BY_SETUP).exists():
        made = made_by_setup(
            store,
            place.folder / TREE,
            commit=request.commit,
            index=place.folder / "index",
            carried=request.contract.carry,
        )
        write_changes(place.folder / MADE_BY_SETUP, made)
