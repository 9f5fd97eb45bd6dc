"""Markdown that foreign text cannot break, for the Web UI. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GAP = "\u00a0\u00a0"
"""The Web UI sets table cells without any space between them."""

_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn text round."""

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&])")


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; its cells are Markdown already."""
    return "\n".join([row(columns), "|---" * len(columns) + "|", *map(row, rows)])


def row(cells: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(f'{cell}{GAP}' for cell in cells)} |"


def cell(text: str, limit: int) -> str:
    """Foreign text as itself: on one line, and nothing in it is Markdown."""
    return _MARKUP.sub(r"\\\1", short(text, limit))


def code(text: str, limit: int) -> str:
    """A code span for a table's cell, where only a bar may be escaped."""
    return "`" + short(text, limit).replace("`", "'").replace("|", "\\|") + "`"


def short(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters of it."""
    flat = " ".join(_UNSEEN.sub("", text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
