"""Texts of the user's tree, for those who derive something from them."""

from __future__ import annotations

from pathlib import Path

from .followed import Read

MAX_BYTES = 1 << 20
"""A larger file is read as if it were empty."""


def top(folder: Path) -> Path:
    """The top of the git repository round a folder; the folder itself outside of one."""
    here = folder.absolute()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def reader(root: Path) -> Read:
    """Read files below `root` by their paths; links that leave it count as what they show."""

    def read(path: str) -> str | None:
        place = root / path
        try:
            if not place.is_file():
                return "" if place.exists() else None
            with place.open("rb") as file:
                return file.read(MAX_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    return read
