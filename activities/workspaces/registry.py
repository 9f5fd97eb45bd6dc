"""Which provider makes the workspaces of this host."""

from __future__ import annotations

from . import Provider
from .clone import CloneProvider

WORKSPACES: Provider = CloneProvider()
"""Clones that borrow the store's objects: they work on every host, and git inside one reaches nothing outside."""
