"""Which provider makes the workspaces of this host."""

from __future__ import annotations

import os
from pathlib import Path

from ...workflows.errors import RefusedError
from ..home import Home
from ..store import Store
from . import BARE, RECORD, Layers, Provider, UnfitError
from .clone import GIT_DIR, CloneProvider
from .gitdir import give_own
from .overlay import UPPER, OverlayProvider, is_overlay
from .probing import overlay_flaw
from .worktree import WorktreeProvider

PROVIDERS: dict[str, Provider] = {p.name: p for p in (OverlayProvider(), CloneProvider(), WorktreeProvider())}
"""In the order in which `auto` prefers them."""

VARIABLE = "ORCH_WORKSPACES"
"""Names the provider in the worker's environment; `auto` is the default."""


def choose(home: Home) -> Provider:
    """The provider of new workspaces; `auto` takes the fastest one that works in this state directory.

    Linked worktrees come last: they share refs, stash and settings of the store among all agents, and its objects are
    theirs to write. Raises RefusedError for a name that is unknown, or of a provider that does not work here.
    """
    name = setting()
    why_not = flaws(home)
    if name in why_not:
        raise RefusedError(f"{VARIABLE} is {name!r}, but {why_not[name]}", hint="use auto: it takes what works here")
    return next(
        provider
        for provider in PROVIDERS.values()
        if name == provider.name or (name == "auto" and provider.name not in why_not)
    )


def setting() -> str:
    """The name in the environment. Raises RefusedError for an unknown one."""
    name, known = os.environ.get(VARIABLE) or "auto", ("auto", *sorted(PROVIDERS))
    if name not in known:
        raise RefusedError(f"{VARIABLE} is {name!r}: no provider of workspaces", hint=f"use one of {', '.join(known)}")
    return name


def flaws(home: Home) -> dict[str, str]:
    """The providers that do not work in this state directory, and why, found by trying once for each boot."""
    flaw = overlay_flaw(home)
    return {OverlayProvider.name: flaw} if flaw else {}


def open_workspace(
    store: Store,
    folder: Path,
    commit: str,
    layers: Layers = BARE,
    *,
    measuring: bool = False,
    own_refs: bool = False,
) -> Path:
    """Open a workspace for a commit, or a copy of it for measuring, by the provider that suits; return its tree.

    With `own_refs` one that shares refs and objects with the store does not suit.
    """
    provider = choose(store.home)
    provider = PROVIDERS["clone"] if own_refs and provider.name == "worktree" else provider
    close_workspace(store, folder)
    try:
        return (provider.copy if measuring else provider.open)(store, folder, commit, layers)
    except UnfitError:
        return PROVIDERS["clone"].open(store, folder, commit)


def show_commit(store: Store, folder: Path, commit: str) -> None:
    """Let git in a workspace read another commit of the store, too, with its history; a linked worktree reads all."""
    git_dir = folder / UPPER / ".git" if is_overlay(folder) else folder / GIT_DIR
    if git_dir.is_dir():
        give_own(store, git_dir / "objects", commit)


def close_workspace(store: Store, folder: Path) -> None:
    """Remove a workspace, whoever made it and whatever state it is in; nothing to remove is no error."""
    provider_of(folder).close(store, folder)


def provider_of(folder: Path) -> Provider:
    """The provider that made a workspace; the simplest one where that is not recorded."""
    try:
        return PROVIDERS[(folder / RECORD).read_text().strip()]
    except (OSError, KeyError):
        return PROVIDERS["worktree" if os.environ.get(VARIABLE) == "worktree" else "clone"]
