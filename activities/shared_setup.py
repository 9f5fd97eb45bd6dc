"""Set-up of attempts' workspaces, once for all that have the same base: what it made becomes a layer below them.

The layer is an overlay workspace of its own in the folder of the layers; its `upper` is the layer. Programs know the
path that they were installed at, so every workspace above it shows its tree at that path, too (`workspaces/enter.py`).
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ..workflows.model.attempt import OpenWorkspace
from ..workflows.model.contract import SecretUse
from ..workflows.model.exit import Exit, ExitKind
from ..workflows.model.verdict import Excerpt
from .artifacts import kept_request
from .changes import read_changes, write_changes
from .effect import in_thread, kill_requested
from .jobs import end_job
from .measuring.setup import JOB, run_setup, said_by
from .places import Place
from .processes import is_usual, scrubbed_environment
from .snapshots import made_by_setup
from .store import Store
from .supervisor import END, LOCK
from .workspaces import INDEX, TREE, Layers, UnfitError
from .workspaces.bases import USED, bases_of, boot, drop_layer, is_made, layer_lock, plain_base
from .workspaces.overlay import UPPER, OverlayProvider
from .workspaces.registry import choose
from .workspaces.removal import remove_tree

MADE_BY_SETUP = "made-by-setup"

PRIVATE = "private"
"""Marks a layer that is of no use to other workspaces: set-up left something in its home."""

OWN = re.compile(r"\bORCH_[A-Z]+|\$\{?(PORT|TMPDIR)\b")
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


async def shared_setup(store: Store, place: Place, request: OpenWorkspace, carried: tuple[str, ...]) -> Shared | None:
    """Set up once for all workspaces with this base; None when what this set-up makes cannot be shared.

    Those who ask for it meanwhile, in whatever process, wait with the first; the last one that is cancelled ends it. A
    set-up that failed is run again by who comes later.
    """
    if OWN.search(request.contract.setup) or (base := await in_thread(_base, store, request.commit)) is None:
        return None
    below = (base, *carried)
    name = f"setup-{_digest(request, place, below)}-{boot()}"
    layer = bases_of(store) / name
    if not is_made(store, name):
        async with _waited_for(store, name):
            await in_thread(_lay, store, name, below, request.commit)
            shared = Place(place.home, place.key, layer)
            exit_ = await run_setup(shared, layer / TREE, request.contract, (), sandbox=request.sandbox)
            if not exit_.ok:
                await in_thread(_keep_output, layer / JOB, place.folder / JOB)
                return Shared(None, exit_, said_by(place))
            await in_thread(_finish, store, name, request)
    if (layer / PRIVATE).exists():
        return None
    await in_thread(_keep_output, layer / JOB, place.folder / JOB)
    write_changes(place.folder / MADE_BY_SETUP, read_changes(layer / MADE_BY_SETUP))
    return Shared(Layers((name,), carried), Exit(kind=ExitKind.OK))


@asynccontextmanager
async def _waited_for(store: Store, name: str) -> AsyncIterator[None]:
    """Say that somebody waits for a set-up; who leaves last ends it if he was cancelled, and drops what is no layer."""
    cancelled = False
    bases_of(store).mkdir(parents=True, exist_ok=True)
    with (bases_of(store) / f"{name}.wanted").open("ab") as wanted:
        await in_thread(fcntl.flock, wanted, fcntl.LOCK_SH)
        try:
            yield
        except asyncio.CancelledError:
            cancelled = kill_requested()
            raise
        finally:
            await in_thread(_leave, store, name, wanted, cancelled=cancelled)


def _leave(store: Store, name: str, wanted: IO[bytes], *, cancelled: bool) -> None:
    try:
        fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    job = bases_of(store) / name / JOB
    if cancelled:
        end_job(job)
    if not is_made(store, name) and (job / END).exists():
        drop_layer(store, name)


def _base(store: Store, commit: str) -> str | None:
    """The layer with the commit's checkout; None where workspaces of it are no overlays."""
    try:
        return plain_base(store, commit) if choose(store.home).name == OverlayProvider.name else None
    except UnfitError:
        return None


def _digest(request: OpenWorkspace, place: Place, below: Sequence[str]) -> str:
    """A short word for all that set-up depends on, as far as it can be known."""
    path = kept_request(place.home, request.attempt.run).path
    passed = [item for item in sorted(scrubbed_environment({}).items()) if not is_usual(item[0])]
    setup = (request.contract.setup, request.contract.setup_timeout_s, request.sandbox)
    secret = any(
        SecretUse.SETUP in one.to for one in request.contract.secrets
    )  # another run may not be meant to see it
    whose = request.attempt.run if secret else ""
    facts = map(str, (*below, request.commit, *setup, path, passed, whose, *request.contract.carry))
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _lay(store: Store, name: str, below: Sequence[str], commit: str) -> None:
    """Make the workspace that set-up runs in, once."""
    layer = bases_of(store) / name
    with layer_lock(store, name):
        if not (layer / "opened").exists():
            OverlayProvider().lay(store, layer, below, commit)
            (layer / "opened").touch()


def _keep_output(job: Path, kept: Path) -> None:
    """Show a job's record as one of the attempt's own: whole, since half of one would be a job that was lost."""
    if not kept.exists():
        aside = kept.with_name(f"{kept.name}.new")
        remove_tree(aside)
        shutil.copytree(job, aside, ignore=shutil.ignore_patterns(LOCK))
        aside.rename(kept)


def _finish(store: Store, name: str, request: OpenWorkspace) -> None:
    """Make a layer of the workspace in which set-up ended well."""
    layer = bases_of(store) / name
    with layer_lock(store, name):
        if is_made(store, name):
            return
        if (layer / PRIVATE).exists() or any(_left(layer / "home")):
            (layer / PRIVATE).touch()
        else:
            made = made_by_setup(
                store, layer / TREE, commit=request.commit, index=layer / INDEX, carried=request.contract.carry
            )
            write_changes(layer / MADE_BY_SETUP, made)
        (layer / USED).touch()  # before anything is removed: from here on nobody asks again
        for folder in ("home", "tmp", *((UPPER,) if (layer / PRIVATE).exists() else ())):
            remove_tree(layer / folder)


def _left(home: Path) -> Iterator[Path]:
    """Files in a home that are more than a cache."""
    for folder, folders, names in os.walk(home):
        inside = Path(folder).relative_to(home)
        folders[:] = [name for name in folders if str(inside / name) not in CACHES]
        yield from (inside / name for name in names)
