"""Workspaces: isolated working copies behind one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from ..store import Store

TREE = "tree"
"""The working copy, in the workspace's folder."""

INDEX = "index"
"""The pristine index of a full checkout, beside it: what a snapshot compares with, out of an agent's way."""

RECORD = "provider"
"""The file in a workspace's folder that names who made it."""


class Layers(NamedTuple):
    """Names of layers that a workspace has besides the commit's own checkout.

    Attributes:
        above: what hides the checkout's files, the topmost first.
        below: what shows where the checkout has no file.
    """

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


BARE = Layers()
"""No other layers."""


class Provider(Protocol):
    """Makes and removes working copies of a commit of the store; blocks, and is safe in threads and processes."""

    name: str

    def open(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """Make a working copy of `commit` for an agent at `folder`/tree and return that path.

        What an interrupted call left is replaced. Only overlays have layers. Raises RefusedError when the commit cannot
        be checked out, HostFaultError when the host stands in the way, UnfitError when another provider must do it.
        """
        ...

    def copy(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """The same for measuring: as fresh, and made of what lies here already where that is faster."""
        ...

    def close(self, store: Store, folder: Path) -> None:
        """Remove what `open` made, whatever state it is in; nothing to remove is no error."""
        ...

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:
        """What a process in the sandbox must be able to write besides the tree, so that git works in it."""
        ...

    def entering(self, folder: Path, argv: tuple[str, ...], *, view: bool = False) -> tuple[str, ...]:
        """The command so that it finds the working copy at `folder`/tree; what runs without that may find nothing.

        For a `view` only: read-only where the provider can make it so, and many at once.
        """
        ...

    def written(self, folder: Path) -> Path:
        """Where that lies which was written in the working copy since it was opened, perhaps among other files."""
        ...


class UnfitError(Exception):
    """The commit needs another provider of workspaces; what it says is the reason."""


def note_provider(folder: Path, name: str) -> None:
    """Record who makes the workspace in a folder, before anything of it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(name)
