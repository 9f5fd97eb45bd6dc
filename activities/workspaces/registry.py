"""Which provider makes the workspaces of this host."""

from __future__ import annotations

import os

from ...workflows.errors import RefusedError
from . import Provider
from .clone import CloneProvider
from .worktree import WorktreeProvider

PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in (CloneProvider(), WorktreeProvider())}

VARIABLE = "ORCH_WORKSPACES"
"""Names the provider in the worker's environment; `auto` is the default."""


def workspaces() -> Provider:
    """The chosen provider; `auto` takes clones: they work on every host, and git inside one reaches nothing outside.

    Linked worktrees share refs, stash and settings of the store among all agents, and its objects are theirs to write.
    """
    name = os.environ.get(VARIABLE) or "auto"
    if name == "auto":
        return PROVIDERS["clone"]
    if name not in PROVIDERS:
        known = ", ".join(["auto", *sorted(PROVIDERS)])
        raise RefusedError(f"{VARIABLE} is {name!r}: no provider of workspaces", hint=f"use one of {known}")
    return PROVIDERS[name]
