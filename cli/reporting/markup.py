"""HTML and SVG as values: whatever is not markup already is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ..talk import clean


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
"""Text is escaped unless it is Html; None is nothing; of anything else its items."""

VOID = frozenset({"br", "meta", "circle", "line", "path", "polygon", "rect"})
"""Elements that never hold anything."""


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element. `class_` is `class`, other underscores are hyphens; an attribute of None is left out."""
    said = "".join(
        f' {_name(key)}="{_text(value, quote=True)}"' for key, value in attributes.items() if value is not None
    )
    inner = join(*children)
    if name in VOID and not inner:
        return Html(f"<{name}{said}/>" if name not in {"br", "meta"} else f"<{name}{said}>")
    return Html(f"<{name}{said}>{inner}</{name}>")


def join(*children: Child) -> Html:
    """Children one after the other."""
    return Html("".join(_markup(child) for child in children))


def _markup(child: Child) -> str:
    match child:
        case Html():
            return child
        case None:
            return ""
        case str() | int() | float():
            return _text(child)
        case _:
            return join(*child)


def _text(value: object, *, quote: bool = False) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return html.escape(clean(str(value)), quote=quote)


def _name(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")
