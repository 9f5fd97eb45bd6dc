"""The shape of a JSON document: every path in it with the kinds of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def shape(*documents: Any) -> str:
    """One line per path, sorted; `[]` is any item of a list, `{}` any key of an open mapping."""
    kinds: dict[str, set[str]] = {}
    for document in documents:
        for path, kind in _paths(document, ""):
            kinds.setdefault(path, set()).add(kind)
    return "".join(f"{path}: {' | '.join(sorted(kinds[path]))}\n" for path in sorted(kinds))


def _paths(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            yield path or ".", "object"
            for key, inner in value.items():
                name = "{}" if path in OPEN else key
                yield from _paths(inner, f"{path}.{name}" if path else name)
        case list():
            yield path, "list"
            for inner in value:
                yield from _paths(inner, f"{path}[]")
        case bool() | str() | None:
            yield path, {bool: "bool", str: "text"}.get(type(value), "null")
        case _:
            yield path, "number"


OPEN = {"rejects", "noise", "reason.data"}
"""Mappings whose keys are data."""
