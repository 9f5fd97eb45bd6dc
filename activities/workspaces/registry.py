"""Which provider makes the workspaces of this host."""

from __future__ import annotations

from . import Provider
from .worktree import WorktreeProvider

WORKSPACES: Provider = WorktreeProvider()
"""Linked worktrees of the store: they work on every host."""
