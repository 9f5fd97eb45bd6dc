"""Workspaces: isolated working copies behind one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ..store import Store

TREE = "tree"
"""The working copy, in the workspace's folder."""

INDEX = "index"
"""The pristine index of the checkout, beside it: what a snapshot compares with, out of an agent's way."""


class Provider(Protocol):
    """Makes and removes working copies of a commit of the store; blocks, and is safe in threads and processes."""

    name: str

    def open(self, store: Store, folder: Path, commit: str) -> Path:
        """Check `commit` out in `folder`/tree, keep its index as `folder`/index, return the tree.

        What an interrupted call left is replaced. Raises RefusedError when the commit cannot be checked out,
        HostFaultError when the host stands in the way.
        """
        ...

    def close(self, store: Store, folder: Path) -> None:
        """Remove what `open` made, whatever state it is in; nothing to remove is no error."""
        ...

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:
        """What a process in the sandbox must be able to write besides the tree, so that git works in it."""
        ...
