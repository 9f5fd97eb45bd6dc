"""Paths that git shall not see in one workspace, by an `info/exclude` of its own: nobody else's is touched."""

from __future__ import annotations

import os
from pathlib import Path

from .clone import GIT_DIR
from .overlay import UPPER, OverlayProvider, is_overlay

EXCLUDE = Path("info/exclude")


def exclude(folder: Path, pattern: str) -> None:
    """Add a pattern to the excludes of the overlay or clone in a folder, unless it is there. No process runs in it."""
    if is_overlay(folder):
        own = folder / UPPER / ".git" / EXCLUDE
        below = next((p for layer in OverlayProvider().lower(folder) if (p := layer / ".git" / EXCLUDE).exists()), own)
    else:
        own = below = folder / GIT_DIR / EXCLUDE
    known = own if own.exists() else below
    text = known.read_bytes() if known.exists() else b""
    line = os.fsencode(pattern)
    if line in text.split(b"\n"):
        return
    own.parent.mkdir(parents=True, exist_ok=True)
    aside = own.with_name("exclude.new")
    aside.write_bytes(text + (b"" if not text or text.endswith(b"\n") else b"\n") + line + b"\n")
    aside.replace(own)
