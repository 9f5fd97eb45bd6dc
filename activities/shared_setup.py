"""Set-up of attempts' workspaces, once for all that have the same base: what it made becomes a layer below them.

The layer is an overlay workspace of its own in the folder of the layers; its `upper` is the layer. Programs know the
path that they were installed at, so every workspace above it shows its tree at that path, too (`workspaces/enter.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..workflows.model.attempt import OpenWorkspace
from ..workflows.model.exit import Exit, ExitKind
from ..workflows.model.verdict import Excerpt
from .artifacts import kept_request
from .changes import read_changes, write_changes
from .effect import in_thread, kill_requested
from .jobs import end_job
from .measuring.setup import JOB, run_setup, said_by
from .places import Place
from .snapshots import made_by_setup
from .store import Store
from .supervisor import END, LOCK
from .workspaces import INDEX, TREE, Layers, UnfitError
from .workspaces.bases import USED, bases_of, boot, drop_layer, is_made, layer_lock, plain_base
from .workspaces.overlay import OverlayProvider
from .workspaces.registry import choose
from .workspaces.removal import remove_tree

MADE_BY_SETUP = "made-by-setup"

PRIVATE = "private"
"""Marks a layer that is of no use to other workspaces: set-up left something in its home."""

OWN = re.compile(r"\bORCH_[A-Z]+|\$\{?PORT\b")
"""A set-up that speaks of variables which differ from workspace to workspace is no one else's."""

CACHES = frozenset({".cache/pip", ".cache/uv", ".cache/yarn", ".cache/node-gyp", ".cache/go-build", ".npm", ".cargo"})
"""What may lie in the home that set-up had and no workspace misses."""


@dataclass(frozen=True)
class Shared:
    """What a shared set-up gave.

    Attributes:
        layers: what a workspace that is set up lies on besides the checkout; None after a failure.
        exit: how set-up ended.
        output: what a failure printed.
    """

    layers: Layers | None
    exit: Exit
    output: Excerpt = field(default_factory=Excerpt)


class SharedSetups:
    """Runs each set-up once; those who ask for it meanwhile wait with the first, and the last one cancelled ends it."""

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()
        self._lock = asyncio.Lock()

    async def get(self, store: Store, place: Place, request: OpenWorkspace, carried: tuple[str, ...]) -> Shared | None:
        """Set up once for all workspaces with this base; None when what this set-up makes cannot be shared.

        A set-up that failed is run again by who comes later.
        """
        if OWN.search(request.contract.setup):
            return None
        if (base := await in_thread(_base, store, request.commit)) is None:
            return None
        below = (base, *carried)
        name = f"setup-{_digest(request, place, below)}-{boot()}"
        layer = bases_of(store) / name
        if not is_made(store, name):
            async with self._waited_for(store, name, below, request.commit):
                shared = Place(place.home, place.key, layer)
                exit_ = await run_setup(shared, layer / TREE, request.contract, (), sandbox=request.sandbox)
                await in_thread(_keep_output, layer / JOB, place.folder / JOB)
                if not exit_.ok:
                    return Shared(None, exit_, said_by(place))
                await in_thread(_finish, store, name, request)
        elif not (place.folder / JOB).exists():
            await in_thread(_keep_output, layer / JOB, place.folder / JOB)
        if (layer / PRIVATE).exists():
            await in_thread(remove_tree, place.folder / JOB)
            return None
        write_changes(place.folder / MADE_BY_SETUP, read_changes(layer / MADE_BY_SETUP))
        return Shared(Layers((name,), carried), Exit(kind=ExitKind.OK))

    @asynccontextmanager
    async def _waited_for(self, store: Store, name: str, below: Sequence[str], commit: str) -> AsyncIterator[None]:
        async with self._lock:
            self._waiting[name] += 1
            await in_thread(_lay, store, name, below, commit)
        job = bases_of(store) / name / JOB
        try:
            yield
        except asyncio.CancelledError:
            if kill_requested() and self._waiting[name] == 1:
                await in_thread(end_job, job)
            raise
        finally:
            async with self._lock:
                self._waiting[name] -= 1
                if not self._waiting[name] and not is_made(store, name) and (job / END).exists():
                    await in_thread(drop_layer, store, name)


def _base(store: Store, commit: str) -> str | None:
    """The layer with the commit's checkout; None where workspaces of it are no overlays."""
    try:
        return plain_base(store, commit) if choose(store.home).name == OverlayProvider.name else None
    except UnfitError:
        return None


def _digest(request: OpenWorkspace, place: Place, below: Sequence[str]) -> str:
    """A short word for all that set-up depends on, as far as it can be known."""
    path = kept_request(place.home, request.attempt.run).path
    facts = (*below, request.contract.setup, repr(request.sandbox), path, *request.contract.carry)
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _lay(store: Store, name: str, below: Sequence[str], commit: str) -> None:
    """Make the workspace that set-up runs in, once."""
    layer = bases_of(store) / name
    with layer_lock(store, name):
        if not (layer / "opened").exists():
            OverlayProvider().lay(store, layer, below, commit)
            (layer / "opened").touch()


def _keep_output(job: Path, kept: Path) -> None:
    """Show a job's record as one of the attempt's own."""
    kept.mkdir(parents=True, exist_ok=True)
    for path in job.iterdir():
        if path.name != LOCK and not (kept / path.name).exists():
            shutil.copy2(path, kept / path.name)


def _finish(store: Store, name: str, request: OpenWorkspace) -> None:
    """Make a layer of the workspace in which set-up ended well."""
    layer = bases_of(store) / name
    with layer_lock(store, name):
        if is_made(store, name):
            return
        made = made_by_setup(
            store, layer / TREE, commit=request.commit, index=layer / INDEX, carried=request.contract.carry
        )
        write_changes(layer / MADE_BY_SETUP, made)
        if any(_left(layer / "home")):
            (layer / PRIVATE).touch()
            OverlayProvider().close(store, layer)
        for folder in ("home", "tmp"):
            remove_tree(layer / folder)
        (layer / USED).touch()


def _left(home: Path) -> Iterator[Path]:
    """Files in a home that are more than a cache."""
    for folder, folders, names in os.walk(home):
        inside = Path(folder).relative_to(home)
        folders[:] = [name for name in folders if str(inside / name) not in CACHES]
        yield from (inside / name for name in names)
