"""The nearest valid word: what a hint offers for a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word closest to `word`, or an empty text when none is close."""
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=0.6)), "")


def offer(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word: the nearest one, or all that are known."""
    names = sorted(known)
    close = nearest(word, names)
    return f"did you mean `{close}`?" if close else f"known: {', '.join(names)}"
